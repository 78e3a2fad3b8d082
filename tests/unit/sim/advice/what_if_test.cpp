// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/what_if.h"

#include <gtest/gtest.h>

#include "sim/advice/variants.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::make_plan;
using testing::make_problem;

struct Rivals {
  std::shared_ptr<const Problem> problem;
  CostModel cost;
  Plan pipeline;  // talks little between nodes
  Plan wide;      // reduces the gradients of all parameters over 4 nodes
};

Rivals rivals() {
  const auto problem = make_problem(
      builtin_model("llama-3-8b"), builtin_cluster("32xh100"), 4096, 256, Precision::kBf16);
  return {problem,
          CostModel(problem->cluster, nullptr),
          make_plan(problem, {.dp_shard = 8, .tp = 1, .pp = 4, .zero_stage = 1}),
          make_plan(problem, {.dp_shard = 32, .tp = 1, .pp = 1, .zero_stage = 1})};
}

/// The order at a value: whether the challenger is faster.
bool challenger_wins(
    const Plan& winner, const Plan& challenger, const CostModel& cost, Knob knob, double at) {
  return *time_with(challenger, cost, knob, at) < *time_with(winner, cost, knob, at);
}

TEST(WhatIf, BandwidthCrossingIsReal) {
  const Rivals r = rivals();
  const Seconds pipeline = simulate(r.pipeline, r.cost).report.step_time;
  const Seconds wide = simulate(r.wide, r.cost).report.step_time;
  ASSERT_LT(wide, pipeline);  // 50 GB/s per GPU hide or shorten the reduction
  const Crossing c =
      find_crossing(r.wide, r.pipeline, r.cost, Knob::kInterNodeBandwidth, /*upwards=*/false);
  EXPECT_DOUBLE_EQ(c.now, 50e9);
  ASSERT_TRUE(c.flip);
  EXPECT_LT(*c.flip, c.now);
  EXPECT_GE(*c.flip, c.bound);
  EXPECT_TRUE(challenger_wins(r.wide, r.pipeline, r.cost, c.knob, *c.flip));
  EXPECT_TRUE(challenger_wins(r.wide, r.pipeline, r.cost, c.knob, *c.flip * 0.99));
  EXPECT_FALSE(challenger_wins(r.wide, r.pipeline, r.cost, c.knob, *c.flip * 1.01));
  // The other way round: at a network slower than that, the wide one wins again above it.
  auto slow = std::make_shared<Problem>(*r.problem);
  slow->cluster.inter_node.bandwidth = BytesPerSecond{*c.flip * 0.9};
  const CostModel cost = r.cost.with_cluster(slow->cluster);
  const Crossing back = find_crossing(make_plan(slow, r.pipeline.layout()),
                                      make_plan(slow, r.wide.layout()),
                                      cost,
                                      Knob::kInterNodeBandwidth,
                                      true);
  ASSERT_TRUE(back.flip);
  EXPECT_TRUE(testing::near_rel(*back.flip, *c.flip, 0.02));
}

TEST(WhatIf, NotByBandwidthAlone) {
  const Rivals r = rivals();
  // The same layout with full recompute computes a third more whatever the network is.
  Layout again = r.wide.layout();
  again.recompute = Recompute::kFull;
  const Plan slower = make_plan(r.problem, again);
  for (const bool upwards : {true, false}) {
    const Crossing c = find_crossing(r.wide, slower, r.cost, Knob::kInterNodeBandwidth, upwards);
    EXPECT_FALSE(c.flip);
    EXPECT_DOUBLE_EQ(c.bound, upwards ? 450e9 : 1.25e9);
  }
}

TEST(WhatIf, OneNodeHasNoNetwork) {
  const auto problem = make_problem(
      builtin_model("llama-3-8b"), builtin_cluster("8xh100"), 4096, 128, Precision::kBf16);
  const CostModel cost(problem->cluster, nullptr);
  const Plan a = make_plan(problem, {.dp_shard = 8, .zero_stage = 1});
  const Plan b = make_plan(problem, {.dp_shard = 4, .tp = 2, .sp = true, .zero_stage = 1});
  const Crossing c = find_crossing(a, b, cost, Knob::kInterNodeBandwidth, true);
  EXPECT_EQ(c.bound, c.now);
  EXPECT_FALSE(c.flip);
}

// 1F1B's bubble (p-1)/(m+p-1) falls with the batch; a pipeline of eight stages needs a larger one
// to beat the gradient reduction of a wide layout over a slow network.
TEST(WhatIf, BatchCrossingIsReal) {
  auto problem = std::make_shared<Problem>(*rivals().problem);
  problem->cluster.inter_node.bandwidth = BytesPerSecond{3e9};
  const CostModel cost(problem->cluster, nullptr);
  const Plan pipeline = make_plan(problem, {.dp_shard = 8, .pp = 4, .zero_stage = 1});
  const Plan wide = make_plan(problem, {.dp_shard = 32, .zero_stage = 1});
  const bool wide_first =
      simulate(wide, cost).report.step_time < simulate(pipeline, cost).report.step_time;
  const Plan& winner = wide_first ? wide : pipeline;
  const Plan& loser = wide_first ? pipeline : wide;
  bool any = false;
  for (const bool upwards : {true, false}) {
    const Crossing c = find_crossing(winner, loser, cost, Knob::kGlobalBatch, upwards);
    if (!c.flip) continue;
    any = true;
    const double step = 32;  // both layouts run multiples of 32 sequences
    EXPECT_DOUBLE_EQ(std::fmod(*c.flip, step), 0);
    EXPECT_TRUE(challenger_wins(winner, loser, cost, c.knob, *c.flip));
    const double nearer = *c.flip + (upwards ? -step : step);
    EXPECT_FALSE(challenger_wins(winner, loser, cost, c.knob, nearer));
  }
  EXPECT_TRUE(any);
}

TEST(WhatIf, ChallengersAreOfAnotherKind) {
  const Rivals r = rivals();
  PlannerOptions options{.top_k = 1, .pins = {.schedule = ScheduleKind::k1f1b}};
  options.keep_feasible = true;
  const PlannerResult found = plan_layouts(r.problem, r.cost, options);
  const RankedPlan& winner = found.plans.front();
  const auto others = challengers(found.all_feasible, winner, r.cost, 4);
  ASSERT_FALSE(others.empty());
  for (size_t i = 0; i < others.size(); ++i) {
    const auto differs = differing_choices(winner.plan.layout(), others[i].plan.layout());
    EXPECT_TRUE(std::any_of(differs.begin(), differs.end(), [](const std::string& d) {
      return d == "tp" || d == "pp" || d == "zero" || d == "recompute";
    }));
    if (i > 0) {
      EXPECT_GE(others[i].simulation.report.step_time, others[i - 1].simulation.report.step_time);
    }
  }
}

TEST(WhatIf, MoreMemoryBuysTimeThatWasPaidForFitting) {
  // On 40 GiB cards the same model needs recompute or more sharding than on 80.
  const auto problem = make_problem(
      builtin_model("llama-3-8b"), builtin_cluster("8xa100-40g"), 4096, 128, Precision::kBf16);
  const CostModel cost(problem->cluster, nullptr);
  const PlannerResult found =
      plan_layouts(problem, cost, {.top_k = 1, .pins = {.schedule = ScheduleKind::k1f1b}});
  ASSERT_FALSE(found.plans.empty());
  const auto more = with_more_memory(found.plans.front(), cost, 4);
  ASSERT_TRUE(more);
  EXPECT_GT(more->needed, problem->cluster.device.memory);
  EXPECT_LT(more->step_time, found.plans.front().simulation.report.step_time);
  // It does fit into a device of that memory, and is not allowed on this one.
  auto larger = std::make_shared<Problem>(*problem);
  larger->cluster.device.memory = more->needed;
  EXPECT_TRUE(simulate(make_plan(larger, more->plan.layout()), cost).fits);
  EXPECT_FALSE(simulate(more->plan, cost).fits);
}

TEST(Variants, DegreesShareTheDevices) {
  const Layout l{.dp_shard = 8,
                 .tp = 2,
                 .sp = true,
                 .pp = 2,
                 .zero_stage = 1,
                 .schedule = ScheduleKind::kZbH1};
  const auto wider = with_degrees(l, 4, 1);
  ASSERT_TRUE(wider);
  EXPECT_EQ(wider->world_size(), l.world_size());
  EXPECT_EQ(wider->dp_shard, 8);
  EXPECT_EQ(wider->schedule, ScheduleKind::k1f1b);
  EXPECT_FALSE(with_degrees(l, 3, 1));
  const auto whole = with_degrees(l, 16, 2);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->zero_stage, 0);  // nothing left to shard over
}

}  // namespace
}  // namespace meshwright
