// Declarations: only pointers to a device pass through our code. See gloo/algorithm.h.
#pragma once

namespace gloo::transport {

class Device;

}  // namespace gloo::transport
