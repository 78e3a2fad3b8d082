// The version of the tool, as CMake states it.
#pragma once

namespace meshwright {

inline constexpr const char* kVersion = MESHWRIGHT_VERSION;

}  // namespace meshwright
