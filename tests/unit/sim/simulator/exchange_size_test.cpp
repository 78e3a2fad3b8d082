// SPDX-License-Identifier: Apache-2.0
// How much leaves in one collective, and what ZeRO-3 does not shard (DeepSpeed's reduce bucket and
// parameter persistence threshold; PyTorch DDP's bucket): program, memory and time.
#include <gtest/gtest.h>

#include "sim/memory/replay.h"
#include "sim/schedule/program_check.h"
#include "sim/simulator/quick_estimate.h"
#include "sim/simulator/simulate.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::make_plan;
using testing::make_problem;

Plan plan_of(const std::string& model, Layout layout, const std::string& cluster = "16xh100") {
  return make_plan(
      make_problem(builtin_model(model), builtin_cluster(cluster), 1024, 64, Precision::kBf16),
      layout);
}

int64_t elements(const RankPlacement& placement, const Action& a) {
  return placement.buckets[static_cast<size_t>(a.bucket)].padded_numel;
}

/// Elements per collective of the first rank's reductions, in order.
std::vector<int64_t> collectives(const Plan& plan) {
  const RankPlacement placement = PlacementTable(plan).of_rank(0);
  const Program program = build_program(plan);
  std::vector<int64_t> sizes;
  for (const Action& a : program.stages[0]) {
    if (a.kind != ActionKind::kReduce) continue;
    if (!a.joined) sizes.push_back(0);
    sizes.back() += elements(placement, a);
  }
  return sizes;
}

constexpr int64_t kMega = 1'000'000;

// GPT-2 small: twelve layers of 7.1 M parameters and a tied table, which leaves last, by itself.
TEST(ExchangeSize, NeighboursShareACollectiveOfTheBucketsSize) {
  const auto sizes = [](int64_t bucket, int zero) {
    return collectives(plan_of(
        "gpt2", {.dp_shard = 16, .micro_batch = 4, .zero_stage = zero, .reduce_bucket = bucket}));
  };
  EXPECT_EQ(sizes(0, 1).size(), 14u);         // head, layers, table
  const auto grouped = sizes(25 * kMega, 1);  // four layers each
  EXPECT_EQ(grouped.size(), 4u);
  for (size_t i = 0; i + 2 < grouped.size(); ++i) EXPECT_GE(grouped[i], 25 * kMega);
  EXPECT_EQ(sizes(1000 * kMega, 1).size(), 2u);
  int64_t all = 0, all_grouped = 0;
  for (const int64_t n : sizes(0, 2)) all += n;
  for (const int64_t n : sizes(25 * kMega, 2)) all_grouped += n;
  EXPECT_EQ(all, all_grouped);
}

TEST(ExchangeSize, TensorsBelowTheThresholdAreNeverGathered) {
  const auto gathered = [](int64_t threshold) {
    const Plan plan = plan_of(
        "llama-2-7b", {.dp_shard = 16, .zero_stage = 3, .persistence_threshold = threshold});
    const RankPlacement placement = PlacementTable(plan).of_rank(0);
    int64_t before_norm = 0, after = 0;
    bool ended = false;
    const Program program = build_program(plan);
    for (const Action& a : program.stages[0]) {
      ended = ended || a.kind == ActionKind::kGradNorm;
      if (a.kind == ActionKind::kGather) (ended ? after : before_norm) += elements(placement, a);
    }
    return std::pair{before_norm, after};
  };
  const auto [all, none] = gathered(0);
  const auto [large, small] = gathered(100'000);
  EXPECT_EQ(none, 0);
  EXPECT_EQ(small, 65 * 4096);  // two norms per layer and the last one
  // All but the layer where forward turns into backward are read twice, in 4 micro-batches.
  EXPECT_LT(large, all);
  EXPECT_GE(large, all - 8 * small);
}

TEST(ExchangeSize, ProgramsAreCompleteOnEveryStage) {
  for (const int zero : {1, 2, 3}) {
    for (const int pp : {1, 2}) {
      for (const int64_t bucket : {int64_t{0}, 25 * kMega, 1000 * kMega}) {
        for (const int64_t threshold : {int64_t{0}, int64_t{100'000}, int64_t{1} << 40}) {
          const Plan plan = plan_of("gpt2",
                                    {.dp_shard = 16 / pp,
                                     .pp = pp,
                                     .zero_stage = zero,
                                     .persistence_threshold = threshold,
                                     .reduce_bucket = bucket});
          const auto defect = check_program(plan, build_program(plan));
          EXPECT_FALSE(defect) << summary(plan.layout()) << ": " << to_string(*defect);
        }
      }
    }
  }
}

TEST(ExchangeSize, MemoryOfWaitingGradientsAndOfWholeTensors) {
  const auto memory = [](const Layout& l) {
    const Plan plan = plan_of("llama-2-7b", l);
    return replay_memory(plan, build_program(plan), 0);
  };
  const double layer = 202'383'360;
  const auto zero2 = [&](int64_t bucket) {
    return memory({.dp_shard = 16, .zero_stage = 2, .reduce_bucket = bucket})[MemoryTerm::kGathered]
        .v;
  };
  // FP32 gradients: two collectives under way, and what fills the next one.
  EXPECT_NEAR(zero2(0), 3 * 4 * layer, 4 * layer);
  EXPECT_NEAR(zero2(4 * 202 * kMega), 12 * 4 * layer, 4 * layer);
  EXPECT_LT(zero2(0), zero2(2 * 202 * kMega));

  const Layout sharded{.dp_shard = 16, .zero_stage = 3};
  Layout persistent = sharded;
  persistent.persistence_threshold = 100'000;
  EXPECT_EQ((memory(persistent)[MemoryTerm::kWeights] - memory(sharded)[MemoryTerm::kWeights]).v,
            2 * 65 * 4096 * (1 - 1 / 16.0));
  EXPECT_EQ(memory(persistent)[MemoryTerm::kOptimizer], memory(sharded)[MemoryTerm::kOptimizer]);
}

// Fully sharded collectives have a start of their own (frameworks.json), which neighbours share.
TEST(ExchangeSize, FewerCollectivesOfASmallModelAreFaster) {
  const auto step = [](int64_t bucket) {
    const Plan plan =
        plan_of("gpt2",
                {.dp_shard = 64, .micro_batch = 1, .zero_stage = 3, .reduce_bucket = bucket},
                "64xh100");
    return simulate(plan, CostModel(plan.cluster(), nullptr)).report.step_time.v;
  };
  EXPECT_LT(step(50 * kMega), step(0));
}

// One collective of everything can start only when the backward is done.
TEST(ExchangeSize, TheQuickEstimateFollowsTheSimulation) {
  for (const char* model : {"gpt2", "llama-2-7b"}) {
    for (const int zero : {1, 2, 3}) {
      double before = 0;
      for (const int64_t bucket : {int64_t{0}, 50 * kMega, 100'000 * kMega}) {
        const Plan plan =
            plan_of(model, {.dp_shard = 16, .zero_stage = zero, .reduce_bucket = bucket});
        const CostModel cost(plan.cluster(), nullptr);
        StageCostCache cache;
        const double simulated = simulate(plan, cost, cache).report.step_time.v;
        const double quick = estimate(plan, cost, cache).step_time.v;
        EXPECT_NEAR(quick / simulated, 1, 0.005) << model << " " << summary(plan.layout());
        if (zero == 1) {
          EXPECT_GE(simulated, before) << summary(plan.layout());
        }
        before = simulated;
      }
    }
  }
}

}  // namespace
}  // namespace meshwright
