// Declarations: the part of Gloo's interface that c10d's ProcessGroupGloo.hpp names.
//
// The PyPI wheel carries Gloo's code inside libtorch_cpu.so but none of its headers. These files
// declare what that one header needs to compile, nothing more: no Gloo object is created or called
// from our code, so only the names and the virtual functions that c10d overrides have to agree.
// Checked for torch 2.11 only (exec/comm/gloo_backend.cpp refuses another version).
#pragma once
