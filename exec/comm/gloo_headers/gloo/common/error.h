// Declarations: ProcessGroupGloo.hpp includes this file but uses nothing of it. See
// gloo/algorithm.h.
#pragma once
