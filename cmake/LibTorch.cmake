# The CPU LibTorch of the PyPI wheel as one imported target, meshwright::torch.
#
# find_package(Torch) of that wheel wants all of CUDA, so the two libraries that a CPU program needs are named
# here. Their RPATH finds libcudart and libcupti beside them in .deps. Headers are SYSTEM: not ours to warn about.
set(MESHWRIGHT_TORCH_ROOT ${PROJECT_SOURCE_DIR}/.deps/torch CACHE PATH "LibTorch of the PyPI wheel")
set(MESHWRIGHT_HAVE_TORCH OFF)
set(MESHWRIGHT_TORCH_SUMMARY "off")
if(NOT MESHWRIGHT_WITH_EXEC STREQUAL "OFF")
  if(EXISTS ${MESHWRIGHT_TORCH_ROOT}/lib/libtorch_cpu.so)
    find_package(Threads REQUIRED)
    set(MESHWRIGHT_HAVE_TORCH ON)
    add_library(meshwright_torch INTERFACE IMPORTED GLOBAL)
    target_include_directories(meshwright_torch SYSTEM INTERFACE ${MESHWRIGHT_TORCH_ROOT}/include)
    target_compile_definitions(meshwright_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
    target_link_libraries(meshwright_torch INTERFACE ${MESHWRIGHT_TORCH_ROOT}/lib/libtorch_cpu.so
                          ${MESHWRIGHT_TORCH_ROOT}/lib/libc10.so Threads::Threads)
    target_link_options(meshwright_torch INTERFACE -Wl,-rpath,${MESHWRIGHT_TORCH_ROOT}/lib
                        -Wl,--allow-shlib-undefined)
    add_library(meshwright::torch ALIAS meshwright_torch)
    file(READ ${MESHWRIGHT_TORCH_ROOT}/version.py _version)
    string(REGEX MATCH "__version__ = '([^']+)'" _ "${_version}")
    set(MESHWRIGHT_TORCH_SUMMARY "LibTorch ${CMAKE_MATCH_1}")
  elseif(MESHWRIGHT_WITH_EXEC STREQUAL "ON")
    message(FATAL_ERROR "MESHWRIGHT_WITH_EXEC=ON but ${MESHWRIGHT_TORCH_ROOT}/lib/libtorch_cpu.so is "
                        "missing: run tools/setup.sh")
  else()
    set(MESHWRIGHT_TORCH_SUMMARY "left out, no LibTorch in .deps (tools/setup.sh installs it)")
  endif()
endif()
