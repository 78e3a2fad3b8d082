// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/hardware_guide.h"

#include <gtest/gtest.h>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

std::vector<DeviceRow> guide_of(const std::string& model, int64_t batch) {
  const auto problem = testing::make_problem(testing::builtin_model(model),
                                             testing::builtin_cluster("8xa100-80g"),
                                             2048,
                                             batch,
                                             Precision::kBf16);
  return hardware_guide(*problem, {.pp = 1, .micro_batch = 1}, {});
}

TEST(HardwareGuide, EveryGpuOncePricedByItsOwnHours) {
  const auto rows = guide_of("llama-3.2-1b", 64);
  EXPECT_EQ(rows.size(), builtin_devices().size() - 1);  // all but the CPU ranks
  for (size_t i = 0; i < rows.size(); ++i) {
    const DeviceRow& r = rows[i];
    EXPECT_EQ(r.cluster.num_devices, 8);
    ASSERT_TRUE(r.best) << r.cluster.device.name;
    const Seconds step = r.best->simulation.report.step_time;
    if (i > 0) {
      EXPECT_GE(step, rows[i - 1].best->simulation.report.step_time);
    }
    const auto dollars = r.per_step(r.prices.on_demand);
    EXPECT_EQ(dollars.has_value(), r.prices.on_demand.has_value());
    if (!dollars) continue;
    EXPECT_NEAR(dollars->v, step.v / 3600 * 8 * r.prices.on_demand->usd_per_hour, 1e-12);
    EXPECT_NEAR(*r.tokens_per_dollar(r.prices.on_demand) * dollars->v, 64 * 2048, 1e-6);
  }
}

// The errata: H100 is 989 TFLOP/s dense, 3.2 times A100's 312; a training step is faster by less.
TEST(HardwareGuide, H100IsFasterThanA100ByLessThanItsPeak) {
  Seconds h100, a100;
  for (const DeviceRow& r : guide_of("llama-3.2-1b", 64)) {
    if (r.cluster.device.name == "h100") h100 = r.best->simulation.report.step_time;
    if (r.cluster.device.name == "a100-80g") a100 = r.best->simulation.report.step_time;
  }
  EXPECT_GT(a100 / h100, 1.5);
  EXPECT_LT(a100 / h100, 3.2);
}

TEST(HardwareGuide, WhatDoesNotFitSaysWhatItNeeds) {
  const auto rows = guide_of("llama-3-8b", 64);
  bool small = false;
  for (const DeviceRow& r : rows) {
    if (r.best) {
      EXPECT_FALSE(small) << "rows that do not fit come last";
      continue;
    }
    small = true;
  }
}

}  // namespace
}  // namespace meshwright
