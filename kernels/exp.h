// exp and sigmoid for float that a compiler can vectorise, because std::exp is a call per element.
//
// Method of the Cephes library (S. Moshier, expf): x = n ln 2 + r with |r| <= ln 2 / 2, a
// polynomial of degree 7 for e^r, then n added to the exponent. ln 2 is split in two so that n *
// kLn2High is exact without a fused multiply-add. Relative error < 2e-7 over the whole normal range
// (exp_test.cpp measures it).
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/simd.h"

namespace meshwright::kernels {

/// e^x. Zero below -87.33 (no denormals), constant 2.4e38 above 88.37 (not infinity, so that a
/// sigmoid stays finite), NaN for NaN.
MW_ALWAYS_INLINE float fast_exp(float x) {
  constexpr float kLowest = -87.33F;
  constexpr float kHighest = 88.37F;
  constexpr float kLog2E = 1.44269504088896341F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRoundingShift = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer.

  // Written so that NaN fails both comparisons and stays NaN.
  const float low_clamped = x < kLowest ? kLowest : x;
  const float clamped = low_clamped > kHighest ? kHighest : low_clamped;
  const float shifted = clamped * kLog2E + kRoundingShift;
  const float n = shifted - kRoundingShift;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;

  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;

  // The low mantissa bits of `shifted` are n; everything above them leaves with the shift.
  const float scale = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127U) << 23U);
  return x < kLowest ? 0.0F : p * scale;
}

/// 1 / (1 + e^-x), in [0, 1].
MW_ALWAYS_INLINE float fast_sigmoid(float x) { return 1.0F / (1.0F + fast_exp(-x)); }

}  // namespace meshwright::kernels
