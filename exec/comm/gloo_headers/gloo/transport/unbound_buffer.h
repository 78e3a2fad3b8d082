// Declarations: c10d's SendWork and RecvWork own one behind a unique_ptr. See gloo/algorithm.h.
#pragma once

namespace gloo::transport {

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};

}  // namespace gloo::transport
