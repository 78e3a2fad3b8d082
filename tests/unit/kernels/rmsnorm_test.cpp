// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/rmsnorm.h"

#include <gtest/gtest.h>

#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kRows = 5;
constexpr float kEps = 1e-5F;

std::vector<double> reference(const std::vector<double>& x, const std::vector<double>& weight) {
  const std::size_t cols = weight.size();
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size() / cols; ++row) {
    double sum = 0.0;
    for (std::size_t j = 0; j < cols; ++j) sum += x[row * cols + j] * x[row * cols + j];
    const double r = 1.0 / std::sqrt(sum / static_cast<double>(cols) + static_cast<double>(kEps));
    for (std::size_t j = 0; j < cols; ++j) y[row * cols + j] = x[row * cols + j] * r * weight[j];
  }
  return y;
}

class RmsNorm : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Columns, RmsNorm, ::testing::ValuesIn(kColumnCounts));

TEST_P(RmsNorm, ForwardMatchesDouble) {
  const std::int64_t cols = GetParam();
  const auto x = random_floats(kRows * cols, 1, 3.0F);
  const auto weight = random_floats(cols, 2);
  std::vector<float> y(x.size());
  std::vector<float> rstd(kRows);
  rmsnorm_forward(x.data(), weight.data(), y.data(), rstd.data(), kRows, cols, kEps);
  expect_close(y, reference(to_double(x), to_double(weight)), 3e-7, 0.0);
  for (std::int64_t row = 0; row < kRows; ++row) {
    double sum = 0.0;
    for (std::int64_t j = 0; j < cols; ++j) {
      const double v = x[at(row * cols + j)];
      sum += v * v;
    }
    const double mean = sum / static_cast<double>(cols) + static_cast<double>(kEps);
    EXPECT_NEAR(rstd[at(row)] * std::sqrt(mean), 1.0, 1e-7);
  }
}

TEST_P(RmsNorm, BackwardMatchesCentralDifferencesAndAdds) {
  const std::int64_t cols = GetParam();
  const auto x = random_floats(kRows * cols, 3);
  const auto weight = random_floats(cols, 4);
  const auto dy = random_floats(kRows * cols, 5);
  std::vector<float> y(x.size());
  std::vector<float> rstd(kRows);
  rmsnorm_forward(x.data(), weight.data(), y.data(), rstd.data(), kRows, cols, kEps);

  constexpr float kBefore = 0.25F;
  std::vector<float> dx(x.size(), kBefore);
  std::vector<float> dweight(weight.size(), -kBefore);
  rmsnorm_backward(
      dy.data(), x.data(), weight.data(), rstd.data(), dx.data(), dweight.data(), kRows, cols);

  auto expected_dx = central_difference(
      [&](const std::vector<double>& v) {
        return dot(reference(v, to_double(weight)), to_double(dy));
      },
      to_double(x));
  auto expected_dweight = central_difference(
      [&](const std::vector<double>& w) { return dot(reference(to_double(x), w), to_double(dy)); },
      to_double(weight));
  for (double& v : expected_dx) v += static_cast<double>(kBefore);
  for (double& v : expected_dweight) v -= static_cast<double>(kBefore);
  expect_close(dx, expected_dx, 2e-6);
  expect_close(dweight, expected_dweight, 2e-6);
}

TEST(RmsNormKnownAnswer, ThreeFour) {
  // mean(9, 16) = 12.5, so y = x / sqrt(12.5) * w.
  const std::vector<float> x = {3.0F, -4.0F};
  const std::vector<float> weight = {1.0F, 2.0F};
  std::vector<float> y(2);
  float rstd = 0.0F;
  rmsnorm_forward(x.data(), weight.data(), y.data(), &rstd, 1, 2, 0.0F);
  EXPECT_FLOAT_EQ(rstd, 0.28284271F);
  EXPECT_FLOAT_EQ(y[0], 0.84852814F);
  EXPECT_FLOAT_EQ(y[1], -2.26274170F);
}

TEST(RmsNormAccuracy, LongRowKeepsItsDigits) {
  // A single float running sum of 2^20 equal squares would be off by percent.
  const std::int64_t cols = std::int64_t{1} << 20U;
  const std::vector<float> x(at(cols), 0.1F);
  const std::vector<float> weight(at(cols), 1.0F);
  std::vector<float> y(x.size());
  float rstd = 0.0F;
  rmsnorm_forward(x.data(), weight.data(), y.data(), &rstd, 1, cols, 0.0F);
  EXPECT_NEAR(rstd, 10.0F, 1e-6F);
}

TEST(RmsNormEdge, ZeroRowStaysFinite) {
  const std::vector<float> x(3, 0.0F);
  const std::vector<float> weight(3, 1.0F);
  std::vector<float> y(3, 7.0F);
  float rstd = 0.0F;
  rmsnorm_forward(x.data(), weight.data(), y.data(), &rstd, 1, 3, kEps);
  EXPECT_EQ(y, std::vector<float>(3, 0.0F));
  EXPECT_TRUE(std::isfinite(rstd));
}

}  // namespace
}  // namespace meshwright::kernels
