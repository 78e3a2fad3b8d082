// Noise for measurements made up from known constants.
#pragma once

#include <cstdint>

namespace meshwright::testing {

/// Uniform on [-1, 1], the same on every machine (64-bit LCG of Knuth's MMIX).
class Noise {
 public:
  double next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<double>(state_ >> 11) * 0x1p-52 - 1;
  }

 private:
  uint64_t state_ = 42;
};

}  // namespace meshwright::testing
