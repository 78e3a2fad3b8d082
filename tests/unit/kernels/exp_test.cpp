// SPDX-License-Identifier: Apache-2.0
#include "kernels/exp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace meshwright::kernels {
namespace {

TEST(FastExp, RelativeErrorBelow2e7OverTheNormalRange) {
  double worst = 0.0;
  for (float x = -87.3F; x < 88.3F; x += 3.1e-4F) {
    const double expected = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(fast_exp(x)) - expected) / expected);
  }
  EXPECT_LT(worst, 2e-7);
}

TEST(FastExp, ExactAndSaturatedPoints) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(fast_exp(0.0F), 1.0F);
  EXPECT_EQ(fast_exp(-0.0F), 1.0F);
  EXPECT_EQ(fast_exp(-87.34F), 0.0F);
  EXPECT_EQ(fast_exp(-kInfinity), 0.0F);
  EXPECT_GT(fast_exp(kInfinity), 2e38F);
  EXPECT_TRUE(std::isfinite(fast_exp(kInfinity)));
  EXPECT_TRUE(std::isnan(fast_exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(FastSigmoid, MatchesDoubleAndStaysInUnitInterval) {
  for (float x = -80.0F; x < 80.0F; x += 0.0173F) {
    const double expected = 1.0 / (1.0 + std::exp(-static_cast<double>(x)));
    ASSERT_NEAR(fast_sigmoid(x), expected, 3e-7 * expected) << x;
  }
  EXPECT_EQ(fast_sigmoid(0.0F), 0.5F);
  EXPECT_EQ(fast_sigmoid(1000.0F), 1.0F);
  EXPECT_LT(fast_sigmoid(-1000.0F), 1e-38F);
  EXPECT_GE(fast_sigmoid(-1000.0F), 0.0F);
}

}  // namespace
}  // namespace meshwright::kernels
