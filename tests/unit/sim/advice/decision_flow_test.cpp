// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/decision_flow.h"

#include <gtest/gtest.h>

#include "sim/advice/least_memory.h"
#include "sim/advice/rule_checks.h"
#include "sim/spec/logical_tensors.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::make_problem;

struct Judgement {
  PlannerResult found;
  DecisionFlow flow;
};

Judgement judge_flow(const std::string& model, const std::string& cluster, int64_t batch) {
  const auto problem =
      make_problem(builtin_model(model), builtin_cluster(cluster), 2048, batch, Precision::kBf16);
  const CostModel cost(problem->cluster, nullptr);
  PlannerOptions options{.top_k = 1, .pins = {.schedule = ScheduleKind::k1f1b}};
  options.keep_feasible = true;
  Judgement j{plan_layouts(problem, cost, options), {}};
  j.flow = decide(problem, cost, options.pins, j.found);
  return j;
}

TEST(LeastMemory, StateBytesAreThoseOfZero) {
  const StateBytes megatron = state_bytes({.precision = Precision::kBf16});
  EXPECT_DOUBLE_EQ(sharded_state_bytes(megatron, 0, 8), 18);
  EXPECT_DOUBLE_EQ(sharded_state_bytes(megatron, 1, 8), 6 + 12.0 / 8);
  EXPECT_DOUBLE_EQ(sharded_state_bytes(megatron, 2, 8), 2 + 16.0 / 8);
  EXPECT_DOUBLE_EQ(sharded_state_bytes(megatron, 3, 8), 18.0 / 8);
  // The chapter's baseline: 70 B parameters, BF16 gradients: 140 + 140 + 840 = 1,120 GB.
  const StateBytes chapter =
      state_bytes({.precision = Precision::kBf16, .gradients = GradientFormat::kBf16});
  EXPECT_DOUBLE_EQ(70e9 * sharded_state_bytes(chapter, 0, 1), 1120e9);
}

TEST(DecisionFlow, SmallModelFitsOneDevice) {
  const Judgement j = judge_flow("llama-3.2-1b", "8xa100-80g", 64);
  EXPECT_EQ(j.flow.strategy, Strategy::kDdp);
  ASSERT_EQ(j.flow.steps.size(), 1u);
  EXPECT_TRUE(j.flow.steps.front().yes);
  EXPECT_LE(j.flow.steps.front().needed, j.flow.steps.front().available);
  ASSERT_TRUE(j.flow.best);
  EXPECT_TRUE(follows(j.flow.best->plan.layout(), Strategy::kDdp, 8));
}

TEST(DecisionFlow, EightBillionParametersShardOverANode) {
  const Judgement j = judge_flow("llama-3-8b", "16xa100-80g", 64);
  EXPECT_EQ(j.flow.strategy, Strategy::kSharded);
  ASSERT_EQ(j.flow.steps.size(), 2u);
  // 18 B x 8.03 B parameters = 134.6 GiB do not fit one device of 77.2.
  EXPECT_FALSE(j.flow.steps.front().yes);
  EXPECT_GT(j.flow.steps.front().needed.v, 18 * 8030261248.0);
  EXPECT_NE(j.flow.steps.front().evidence.find("134.62 GiB"), std::string::npos)
      << j.flow.steps.front().evidence;
  ASSERT_TRUE(j.flow.best);
  EXPECT_EQ(j.flow.best->plan.layout().tp, 1);
  EXPECT_EQ(j.flow.best->plan.layout().pp, 1);
}

TEST(DecisionFlow, SeventyBillionParametersNeedMoreThanANode) {
  const Judgement j = judge_flow("llama-3-70b", "64xa100-80g", 128);
  EXPECT_EQ(j.flow.strategy, Strategy::kTensorSharded);
  ASSERT_EQ(j.flow.steps.size(), 3u);
  // 18 B x 70.55 B / 8 = 147.8 GiB of states per device of a node.
  EXPECT_GT(j.flow.steps[1].needed.v, 18 * 70553706496.0 / 8);
  ASSERT_TRUE(j.flow.best);
  EXPECT_EQ(j.flow.best->plan.layout().pp, 1);
  EXPECT_LE(j.flow.best->plan.layout().tp, 8);
  EXPECT_TRUE(j.flow.best->simulation.fits);
}

TEST(DecisionFlow, NothingFits) {
  const Judgement j = judge_flow("llama-3-70b", "2xv100", 16);
  EXPECT_EQ(j.flow.strategy, Strategy::kNone);
  EXPECT_EQ(j.flow.steps.size(), 4u);
  EXPECT_FALSE(j.flow.best);
}

// (P-1)/(V M + P-1) < 10 %.
TEST(DecisionFlow, MicroBatchesByTheExactFormula) {
  for (const int p : {2, 4, 8, 16}) {
    for (const int v : {1, 2, 3}) {
      const auto bubble = [&](int64_t m) {
        return (p - 1.0) / (static_cast<double>(v * m) + p - 1);
      };
      const int64_t m = micro_batches_for_small_bubble(p, v);
      EXPECT_LT(bubble(m), 0.1);
      EXPECT_GE(bubble(m - 1), 0.1 - 1e-12);
    }
  }
  EXPECT_EQ(micro_batches_for_small_bubble(4, 1), 28);  // not 30
  EXPECT_EQ(micro_batches_for_small_bubble(1, 1), 1);
}

TEST(DecisionFlow, RulesCiteWhatBreaksThem) {
  const auto problem = make_problem(
      builtin_model("llama-3-70b"), builtin_cluster("64xa100-80g"), 4096, 64, Precision::kBf16);
  const CostModel cost(problem->cluster, nullptr);
  const Plan plan = testing::make_plan(
      problem, {.dp_replicate = 1, .tp = 16, .sp = false, .pp = 4, .micro_batch = 4});
  const RankedPlan ranked{plan, simulate(plan, cost)};
  DecisionFlow flow;
  flow.strategy = Strategy::kTensorSharded;
  int broken = 0;
  for (const RuleCheck& c : check_rules(ranked, cost, flow)) broken += c.holds ? 0 : 1;
  // tp over nodes, sp off, tp beyond 8 KV heads, 16 micro-batches for 4 stages, pp without need.
  EXPECT_EQ(broken, 5);
}

}  // namespace
}  // namespace meshwright
