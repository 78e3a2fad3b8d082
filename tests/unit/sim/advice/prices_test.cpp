// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/prices.h"

#include <gtest/gtest.h>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

// 10,000 steps x 45 s = 125 h x 64 A100 at $1.20 spot.
TEST(Prices, ChaptersExample) {
  const auto prices = prices_of(testing::builtin_cluster("64xa100-80g"));
  ASSERT_TRUE(prices.spot);
  EXPECT_DOUBLE_EQ(prices.spot->usd_per_hour, 1.20);
  EXPECT_NEAR(cost_of_steps(10000, Seconds{45}, 64, prices.spot->usd_per_hour).v, 9600, 1e-6);
  EXPECT_EQ(show(Dollars{9600}), "$9,600");
}

TEST(Prices, EveryPriceHasSourceAndDate) {
  for (const std::string& device : builtin_devices()) {
    const auto prices = prices_of(testing::builtin_cluster("8x" + device));
    EXPECT_FALSE(prices.own);
    for (const auto& price : {prices.on_demand, prices.spot}) {
      if (!price) continue;
      EXPECT_GT(price->usd_per_hour, 0) << device;
      EXPECT_FALSE(price->source.empty()) << device;
      EXPECT_FALSE(price->date.empty()) << device;
    }
  }
}

TEST(Prices, TheClustersOwnPriceWins) {
  ClusterSpec c = testing::builtin_cluster("8xh100");
  c.price_usd_per_device_hour = 3.5;
  const auto prices = prices_of(c);
  EXPECT_TRUE(prices.own);
  EXPECT_DOUBLE_EQ(prices.on_demand->usd_per_hour, 3.5);
  EXPECT_FALSE(prices.spot);
}

TEST(Prices, UnknownStaysUnknown) {
  EXPECT_FALSE(prices_of(testing::builtin_cluster("4xlocal")).on_demand);
  EXPECT_FALSE(prices_of(testing::builtin_cluster("8xgb300")).on_demand);
}

}  // namespace
}  // namespace meshwright
