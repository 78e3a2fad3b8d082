// A sum that is fast, accurate and the same on every vector width.
//
// One running sum is a chain of dependent additions, and letting the compiler split it makes the
// order depend on the ISA. Here the order is fixed: 16 double lanes, element j in lane j % 16,
// joined by a binary tree. Doubles hold a product of two floats exactly, so the error is that of
// the inputs.
#pragma once

#include <cstdint>

#include "kernels/simd.h"

namespace meshwright::kernels {

/// Sum of term(0) ... term(n - 1), where `term` maps an int64_t index to a double and is
/// MW_ALWAYS_INLINE or a lambda. n = 0 gives 0.
template <class Term>
MW_ALWAYS_INLINE double lane_sum(std::int64_t n, Term term) {
  constexpr std::int64_t kLanes = 16;
  double lanes[kLanes] = {};
  std::int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(j + lane);
  }
  for (std::int64_t lane = 0; j + lane < n; ++lane) lanes[lane] += term(j + lane);
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

}  // namespace meshwright::kernels
