// SPDX-License-Identifier: Apache-2.0
// Runs once per parameter at start-up, so it is written for exactness: double, only + - * / sqrt
// (which IEEE 754 rounds exactly), no fused multiply-add (see kernels/CMakeLists.txt).
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "kernels/random/fill_normal.h"
#include "kernels/random/philox.h"

namespace meshwright::kernels {
namespace {

/// Horner's rule; the coefficient of the highest power first.
template <std::size_t kSize>
double polynomial(const double (&coefficients)[kSize], double x) {
  double p = coefficients[0];
  for (std::size_t i = 1; i < kSize; ++i) p = p * x + coefficients[i];
  return p;
}

/// Natural logarithm of a normal u > 0, absolute error < 1e-12: u = m 2^e with m in [sqrt(1/2),
/// sqrt(2)), log m = 2 atanh(s), s = (m - 1) / (m + 1).
double log_positive(double u) {
  constexpr double kLog[] = {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0};
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52U) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(u);
  auto exponent = static_cast<std::int64_t>(bits >> 52U) - 1023;
  double m = std::bit_cast<double>((bits & kMantissa) | (std::uint64_t{1023} << 52U));
  if (m >= 1.41421356237309504880) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  const double p = polynomial(kLog, s2);
  return static_cast<double>(exponent) * kLn2 + 2.0 * s * p;
}

struct CosSin {
  double cos;
  double sin;
};

/// Cosine and sine of 2 pi u for u in [0, 1), absolute error < 1e-11: Taylor within 1/8 turn of a
/// quarter turn.
CosSin cos_sin_of_turns(double u) {
  constexpr double kSin[] = {-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0};
  constexpr double kCos[] = {
      1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -1.0 / 2, 1.0};
  constexpr double kHalfPi = 1.57079632679489661923;
  const int quarter = static_cast<int>(u * 4.0 + 0.5);
  const double r = (u * 4.0 - static_cast<double>(quarter)) * kHalfPi;
  const double r2 = r * r;
  const double sin = r * polynomial(kSin, r2);
  const double cos = polynomial(kCos, r2);
  switch (quarter % 4) {
    case 0:
      return {cos, sin};
    case 1:
      return {-sin, cos};
    case 2:
      return {-cos, -sin};
    default:
      return {sin, -cos};
  }
}

/// Two independent standard normals from two words (Box and Muller 1958).
CosSin normal_pair(std::uint32_t radius_word, std::uint32_t angle_word) {
  constexpr double kUnit = 0x1p-32;
  const double u =
      (static_cast<double>(radius_word) + 0.5) * kUnit;  // in (0, 1): the logarithm is finite
  const double radius = std::sqrt(-2.0 * log_positive(u));
  const CosSin direction = cos_sin_of_turns(static_cast<double>(angle_word) * kUnit);
  return {radius * direction.cos, radius * direction.sin};
}

/// The normals of the global elements 4 * block ... 4 * block + 3.
std::array<double, 4> normal_block(std::uint64_t block, std::uint64_t seed, std::uint64_t key) {
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32U); };
  const auto words =
      philox4x32_10({low(block), high(block), low(key), high(key)}, {low(seed), high(seed)});
  const CosSin first = normal_pair(words[0], words[1]);
  const CosSin second = normal_pair(words[2], words[3]);
  return {first.cos, first.sin, second.cos, second.sin};
}

}  // namespace

void fill_normal(float* out,
                 std::int64_t rows,
                 std::int64_t cols,
                 std::int64_t row_stride_global,
                 std::int64_t row_begin,
                 std::int64_t col_begin,
                 std::uint64_t seed,
                 std::uint64_t tensor_key,
                 float stddev) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto first = static_cast<std::uint64_t>((row_begin + i) * row_stride_global + col_begin);
    std::array<double, 4> normals{};
    for (std::int64_t j = 0; j < cols; ++j) {
      const std::uint64_t element = first + static_cast<std::uint64_t>(j);
      const std::uint64_t lane = element % 4;
      if (j == 0 || lane == 0) normals = normal_block(element / 4, seed, tensor_key);
      out[i * cols + j] = static_cast<float>(normals[lane] * static_cast<double>(stddev));
    }
  }
}

}  // namespace meshwright::kernels
