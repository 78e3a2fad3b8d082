// SPDX-License-Identifier: Apache-2.0
#include "sim/planner/objective.h"

#include <gtest/gtest.h>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;

std::shared_ptr<const Problem> llama_8b_on_16() {
  auto p = std::make_shared<Problem>();
  p->model = builtin_model("llama-3-8b");
  p->cluster = builtin_cluster("16xa100-80g");
  p->workload = load_workload("pretrain", false, {}).value();
  return p;
}

PlannerResult best(Objective objective) {
  const auto problem = llama_8b_on_16();
  return plan_for(objective,
                  problem,
                  CostModel(problem->cluster, nullptr),
                  {.top_k = 3, .pins = {.schedule = ScheduleKind::k1f1b}});
}

TEST(Objective, SizesArePowersOfTwoAndTheWhole) {
  EXPECT_EQ(device_counts(builtin_cluster("20xa100-80g"), Objective::kGpus),
            (std::vector<int>{1, 2, 4, 8, 16, 20}));
  EXPECT_EQ(device_counts(builtin_cluster("20xa100-80g"), Objective::kTime), std::vector<int>{20});
}

TEST(Objective, FewestDevicesIsTheFirstSizeThatFits) {
  // 8.03 B parameters at 18 bytes are 135 GiB of state: one device of 77 GiB cannot hold them, two
  // can.
  const PlannerResult r = best(Objective::kGpus);
  ASSERT_FALSE(r.plans.empty());
  for (const RankedPlan& p : r.plans) EXPECT_EQ(p.plan.world_size(), 2);
}

TEST(Objective, CheapestHasTheLeastDeviceTimeOfAllSizes) {
  const PlannerResult cost = best(Objective::kCost);
  const PlannerResult time = best(Objective::kTime);
  const PlannerResult gpus = best(Objective::kGpus);
  const auto device_seconds = [](const PlannerResult& r) {
    return r.plans.front().plan.world_size() * r.plans.front().simulation.report.step_time.v;
  };
  EXPECT_LE(device_seconds(cost), device_seconds(time));
  EXPECT_LE(device_seconds(cost), device_seconds(gpus));
  EXPECT_LE(time.plans.front().simulation.report.step_time,
            cost.plans.front().simulation.report.step_time);
}

}  // namespace
}  // namespace meshwright
