// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kRows = 5;

class Elementwise : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Columns, Elementwise, ::testing::ValuesIn(kColumnCounts));

TEST_P(Elementwise, AddAndScaleAreExact) {
  const std::int64_t n = GetParam();
  const auto x = random_floats(n, 1);
  const auto before = random_floats(n, 2);
  auto y = before;
  add_inplace(y.data(), x.data(), n);
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], before[i] + x[i]);
  y = before;
  scale_inplace(y.data(), 0.3F, n);
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], before[i] * 0.3F);
}

TEST_P(Elementwise, BiasForwardAndBackward) {
  const std::int64_t cols = GetParam();
  const auto before = random_floats(kRows * cols, 3);
  const auto bias = random_floats(cols, 4);
  auto y = before;
  add_bias(y.data(), bias.data(), kRows, cols);
  std::vector<float> dbias(bias.size(), 2.0F);
  std::vector<double> expected(bias.size(), 2.0);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t j = i % bias.size();
    ASSERT_EQ(y[i], before[i] + bias[j]);
    expected[j] += static_cast<double>(before[i]);
  }
  bias_backward(before.data(), dbias.data(), kRows, cols);
  expect_close(dbias, expected, 3e-7);
}

TEST_P(Elementwise, SumOfSquaresMatchesDouble) {
  const auto x = random_floats(GetParam(), 5);
  EXPECT_NEAR(sum_of_squares(x.data(), GetParam()) / dot(to_double(x), to_double(x)), 1.0, 1e-14);
}

TEST(SumOfSquares, KnownAnswersAndNan) {
  EXPECT_EQ(sum_of_squares(nullptr, 0), 0.0);
  std::vector<float> x = {3.0F, 4.0F, 12.0F};
  EXPECT_EQ(sum_of_squares(x.data(), 3), 169.0);
  // (1e30)^2 overflows float and not double.
  x = {1e30F};
  EXPECT_NEAR(sum_of_squares(x.data(), 1), 1e60, 1e53);
  x.assign(100, 1.0F);
  x[98] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(sum_of_squares(x.data(), 100)));
}

}  // namespace
}  // namespace meshwright::kernels
