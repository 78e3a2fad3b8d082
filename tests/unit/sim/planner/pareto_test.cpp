// SPDX-License-Identifier: Apache-2.0
#include "sim/planner/pareto.h"

#include <gtest/gtest.h>

#include <random>

#include "sim/planner/objective.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

TEST(Pareto, DropsWhatIsBeaten) {
  // (2, 2) is beaten by (1, 2); the second (3, 1) equals the first.
  const std::vector<std::vector<double>> points = {{3, 1}, {2, 2}, {1, 2}, {3, 1}, {4, 4}};
  EXPECT_EQ(pareto_front(points), (std::vector<size_t>{2, 0}));
  EXPECT_TRUE(pareto_front({}).empty());
}

TEST(Pareto, AgreesWithTheDefinition) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> value(0, 9);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<double>> points(30, std::vector<double>(3));
    for (auto& p : points) {
      for (double& x : p) x = value(random);
    }
    std::vector<char> on_front(points.size());
    for (const size_t i : pareto_front(points)) on_front[i] = 1;
    for (size_t i = 0; i < points.size(); ++i) {
      bool beaten = false;
      bool equal_on_front = false;
      for (size_t j = 0; j < points.size(); ++j) {
        bool no_worse = true;
        for (size_t k = 0; k < 3; ++k) no_worse = no_worse && points[j][k] <= points[i][k];
        if (no_worse && points[j] != points[i]) beaten = true;
        if (points[j] == points[i] && on_front[j]) equal_on_front = true;
      }
      EXPECT_EQ(equal_on_front, !beaten);
    }
  }
}

PlannerResult search_8b(Objective objective, bool keep, double slack = kMemorySlack) {
  const auto problem = testing::make_problem(testing::builtin_model("llama-3-8b"),
                                             testing::builtin_cluster("8xh100"),
                                             4096,
                                             128,
                                             Precision::kBf16);
  PlannerOptions options{.top_k = 3, .pins = {.schedule = ScheduleKind::k1f1b}};
  options.keep_feasible = options.replay_all = keep;
  return plan_for(objective, problem, CostModel(problem->cluster, nullptr), options, slack);
}

TEST(Pareto, FrontOfASearch) {
  const PlannerResult r = search_8b(Objective::kTime, true);
  ASSERT_EQ(static_cast<int64_t>(r.all_feasible.size()), r.feasible);
  const CostModel cost(r.plans.front().plan.cluster(), nullptr);
  const auto front = simulated_front(r.all_feasible, cost, FrontAxis::kNone, 0, 64);
  ASSERT_GE(front.size(), 2u);
  // Ascending in time, descending in memory, from the fastest to the smallest.
  // (The closed form chooses which are simulated: its fastest may be the second by the events.)
  const Seconds fastest = r.plans.front().simulation.report.step_time;
  EXPECT_GE(front.front().simulation.report.step_time, fastest);
  EXPECT_LE(front.front().simulation.report.step_time, fastest * 1.02);
  for (size_t i = 1; i < front.size(); ++i) {
    const StepReport& before = front[i - 1].simulation.report;
    const StepReport& here = front[i].simulation.report;
    EXPECT_GT(here.step_time, before.step_time);
    EXPECT_LT(here.peak_memory, before.peak_memory);
  }
  Bytes least = r.all_feasible.front().peak;
  for (const Candidate& c : r.all_feasible) least = std::min(least, c.peak);
  EXPECT_EQ(front.back().simulation.report.peak_memory, least);
  // A coarser grain is a subset of choices that differ by it.
  EXPECT_LE(simulated_front(r.all_feasible, cost, FrontAxis::kNone, 0.05, 64).size(), front.size());
}

TEST(Objective, MemoryGivesAwayNoMoreThanTheSlack) {
  const PlannerResult time = search_8b(Objective::kTime, false);
  const Seconds fastest = time.plans.front().simulation.report.step_time;
  Bytes before = time.plans.front().simulation.report.peak_memory;
  for (const double slack : {0.0, 0.1, 0.5}) {
    const PlannerResult r = search_8b(Objective::kMemory, false, slack);
    ASSERT_FALSE(r.plans.empty());
    EXPECT_TRUE(r.all_feasible.empty());
    const Bytes peak = r.plans.front().simulation.report.peak_memory;
    EXPECT_LE(peak, before);  // more slack never needs more memory
    before = peak;
    for (const RankedPlan& p : r.plans) {
      EXPECT_LE(p.simulation.report.step_time, fastest * (1 + slack));
      EXPECT_GE(p.simulation.report.peak_memory, peak);
    }
  }
  EXPECT_LT(before, time.plans.front().simulation.report.peak_memory);
}

TEST(Objective, FrontOverSizesKeepsTheSmallest) {
  const PlannerResult r = search_8b(Objective::kGpus, true);
  const CostModel cost(r.plans.front().plan.cluster(), nullptr);
  int fewest = 8;
  for (const Candidate& c : r.all_feasible) fewest = std::min(fewest, c.plan.world_size());
  int on_front = 8;
  for (const RankedPlan& p : simulated_front(r.all_feasible, cost, FrontAxis::kDevices, 0.02, 64)) {
    on_front = std::min(on_front, p.plan.world_size());
  }
  EXPECT_LT(fewest, 8);
  EXPECT_EQ(on_front, fewest);
}

}  // namespace
}  // namespace meshwright
