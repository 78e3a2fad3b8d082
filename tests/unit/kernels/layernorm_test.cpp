// SPDX-License-Identifier: Apache-2.0
#include "kernels/layernorm/layernorm.h"

#include <gtest/gtest.h>

#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kRows = 5;
constexpr float kEps = 1e-5F;

std::vector<double> reference(const std::vector<double>& x,
                              const std::vector<double>& weight,
                              const std::vector<double>& bias) {
  const std::size_t cols = weight.size();
  const auto n = static_cast<double>(cols);
  std::vector<double> y(x.size());
  for (std::size_t row = 0; row < x.size() / cols; ++row) {
    double mean = 0.0, variance = 0.0;
    for (std::size_t j = 0; j < cols; ++j) mean += x[row * cols + j] / n;
    for (std::size_t j = 0; j < cols; ++j)
      variance += (x[row * cols + j] - mean) * (x[row * cols + j] - mean) / n;
    const double r = 1.0 / std::sqrt(variance + static_cast<double>(kEps));
    for (std::size_t j = 0; j < cols; ++j)
      y[row * cols + j] = (x[row * cols + j] - mean) * r * weight[j] + bias[j];
  }
  return y;
}

class LayerNorm : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Columns, LayerNorm, ::testing::ValuesIn(kColumnCounts));

TEST_P(LayerNorm, MatchesDoubleAndCentralDifferencesAndAdds) {
  const std::int64_t cols = GetParam();
  const auto x = random_floats(kRows * cols, 1, 3.0F);
  const auto weight = random_floats(cols, 2);
  const auto bias = random_floats(cols, 3);
  const auto dy = random_floats(kRows * cols, 4);
  std::vector<float> y(x.size()), mean(kRows), rstd(kRows);
  layernorm_forward(
      x.data(), weight.data(), bias.data(), y.data(), mean.data(), rstd.data(), kRows, cols, kEps);
  expect_close(y, reference(to_double(x), to_double(weight), to_double(bias)), 2e-6);
  if (cols == 1) return;  // the gradient is zero, and the difference all rounding

  constexpr float kBefore = 0.25F;
  std::vector<float> dx(x.size(), kBefore), dweight(weight.size(), kBefore),
      dbias(bias.size(), kBefore);
  layernorm_backward(dy.data(),
                     x.data(),
                     weight.data(),
                     mean.data(),
                     rstd.data(),
                     dx.data(),
                     dweight.data(),
                     dbias.data(),
                     kRows,
                     cols);
  const auto expect_gradient =
      [&](const std::vector<float>& got, const std::vector<float>& of, auto&& forward) {
        auto expected = central_difference(
            [&](const std::vector<double>& v) { return dot(forward(v), to_double(dy)); },
            to_double(of));
        for (double& v : expected) v += static_cast<double>(kBefore);
        expect_close(got, expected, 4e-6);
      };
  expect_gradient(dx, x, [&](const std::vector<double>& v) {
    return reference(v, to_double(weight), to_double(bias));
  });
  expect_gradient(dweight, weight, [&](const std::vector<double>& v) {
    return reference(to_double(x), v, to_double(bias));
  });
  expect_gradient(dbias, bias, [&](const std::vector<double>& v) {
    return reference(to_double(x), to_double(weight), v);
  });
}

TEST(LayerNormKnownAnswer, OneThree) {
  const std::vector<float> x = {1.0F, 3.0F}, weight = {2.0F, 0.5F}, bias = {0.0F, 10.0F};
  std::vector<float> y(2);
  float mean = 0.0F, rstd = 0.0F;
  layernorm_forward(x.data(), weight.data(), bias.data(), y.data(), &mean, &rstd, 1, 2, 0.0F);
  EXPECT_EQ(mean, 2.0F);
  EXPECT_EQ(rstd, 1.0F);
  EXPECT_EQ(y, (std::vector<float>{-2.0F, 10.5F}));
}

TEST(LayerNormAccuracy, ARowFarFromZeroKeepsItsDigits) {
  const std::vector<float> x = {16384.0F, 16385.0F, 16386.0F}, weight(3, 1.0F), bias(3, 0.0F);
  std::vector<float> y(3);
  float mean = 0.0F, rstd = 0.0F;
  layernorm_forward(x.data(), weight.data(), bias.data(), y.data(), &mean, &rstd, 1, 3, 0.0F);
  EXPECT_NEAR(y[2], std::sqrt(1.5), 1e-6);
}

}  // namespace
}  // namespace meshwright::kernels
