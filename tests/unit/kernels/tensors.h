// What the kernel tests share: reproducible inputs, a comparison that names the element, and the
// central difference that every backward is held against. The difference is taken on a
// double-precision forward written out in the test, so its error (about 1e-9) lies far below that
// of the float kernel.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace meshwright::kernels::testing {

/// Odd and even, below, at and above the vector width of every ISA.
inline const std::vector<std::int64_t> kColumnCounts = {1, 3, 16, 17, 64, 129};

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// `n` values in [-scale, scale), the same on every machine.
inline std::vector<float> random_floats(std::int64_t n, std::uint32_t seed, float scale = 1.0F) {
  std::mt19937 bits(seed);
  std::vector<float> values(at(n));
  for (float& v : values) v = scale * (static_cast<float>(bits() >> 8U) * 0x1p-23F - 1.0F);
  return values;
}

inline std::vector<double> to_double(const std::vector<float>& x) { return {x.begin(), x.end()}; }

/// |actual - expected| <= tolerance * (|expected| + floor), element by element.
inline void expect_close(const std::vector<float>& actual,
                         const std::vector<double>& expected,
                         double tolerance,
                         double floor = 1.0) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * (std::abs(expected[i]) + floor))
        << "element " << i;
  }
}

/// d f / d x[i] for every i, by (f(x + h) - f(x - h)) / 2h with h = 1e-5.
inline std::vector<double> central_difference(
    const std::function<double(const std::vector<double>&)>& f, std::vector<double> x) {
  constexpr double kStep = 1e-5;
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    x[i] = middle + kStep;
    const double above = f(x);
    x[i] = middle - kStep;
    const double below = f(x);
    x[i] = middle;
    gradient[i] = (above - below) / (2.0 * kStep);
  }
  return gradient;
}

/// Inner product, to turn a tensor-valued forward into the scalar whose gradient is the backward of
/// `weights`.
inline double dot(const std::vector<double>& x, const std::vector<double>& weights) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * weights[i];
  return sum;
}

}  // namespace meshwright::kernels::testing
