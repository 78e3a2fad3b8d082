// SPDX-License-Identifier: Apache-2.0
// Memory of ZeRO-2 and 3, context and expert parallelism, partial recompute and offload.
#include <gtest/gtest.h>

#include "sim/memory/replay.h"
#include "sim/simulator/peak_memory.h"
#include "sim/simulator/quick_estimate.h"
#include "sim/simulator/simulate.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::ideal_plan;
using testing::make_plan;
using testing::make_problem;
using testing::small_model;

constexpr double kLlama7b = 6'738'415'616.0;

MemoryProfile profile(const Plan& plan) { return replay_memory(plan, build_program(plan), 0); }

double model_states(const MemoryProfile& p) {
  return (p[MemoryTerm::kWeights] + p[MemoryTerm::kGradients] + p[MemoryTerm::kOptimizer]).v;
}

Plan h100_plan(const std::string& model, int devices, const Layout& layout, int64_t seq = 2048) {
  return make_plan(make_problem(builtin_model(model),
                                builtin_cluster(std::to_string(devices) + "xh100"),
                                seq,
                                64,
                                Precision::kBf16),
                   layout);
}

MemoryProfile llama(Layout layout) { return profile(h100_plan("llama-2-7b", 8, layout)); }

// ZeRO (arXiv:1910.02054, figure 1) in our formats: 2 + 4 + 12 bytes, of which stage 1 shards the
// optimizer's 12, stage 2 the gradient's 4 too, stage 3 all.
TEST(ShardedMemory, StatesPerZeroStage) {
  const auto zero = [](int stage) {
    return model_states(llama({.dp_shard = 8, .zero_stage = stage}));
  };
  EXPECT_EQ(zero(1), (2 + 4 + 12 / 8.0) * kLlama7b);
  EXPECT_EQ(zero(2), (2 + (4 + 12) / 8.0) * kLlama7b);
  EXPECT_EQ(zero(3), 18 / 8.0 * kLlama7b);
  // Shards over dp_shard alone; ranks of a sequence share them too.
  EXPECT_EQ(model_states(llama({.dp_replicate = 2, .dp_shard = 4, .zero_stage = 3})),
            18 / 4.0 * kLlama7b);
  EXPECT_EQ(model_states(llama({.dp_shard = 4, .cp = 2, .zero_stage = 3})), 18 / 8.0 * kLlama7b);
}

// 16 bytes: BF16 gradients (DeepSpeed, FSDP). Moments in BF16 or 8 bits: 2 or 1 bytes each.
TEST(ShardedMemory, FormatsOfStates) {
  const auto bytes = [](GradientFormat g, MomentFormat m) {
    return model_states(llama({.dp_replicate = 8, .gradients = g, .moments = m})) / kLlama7b;
  };
  EXPECT_EQ(bytes(GradientFormat::kFp32, MomentFormat::kFp32), 18);
  EXPECT_EQ(bytes(GradientFormat::kBf16, MomentFormat::kFp32), 16);
  EXPECT_EQ(bytes(GradientFormat::kBf16, MomentFormat::kBf16), 2 + 2 + 4 + 4);
  EXPECT_EQ(bytes(GradientFormat::kFp32, MomentFormat::kInt8), 2 + 4 + 4 + 2);
}

TEST(ShardedMemory, GatheredBlocksFollowThePrefetch) {
  // One layer of Llama-2-7B, and the two tables of 32000 x 4096.
  const double layer = 4 * 4096.0 * 4096 + 3 * 4096.0 * 11008 + 2 * 4096;
  const double weight = 2 * layer;
  const double gradient = 4 * layer;
  const auto gathered = [&](int prefetch) {
    return llama({.dp_shard = 8, .zero_stage = 3, .prefetch = prefetch})[MemoryTerm::kGathered].v;
  };
  // At the peak, deep in backward: the layer at work and those gathered ahead, and the gradients of
  // that layer and of the two whose reductions are under way.
  EXPECT_GE(gathered(1), 2 * weight + gradient);
  EXPECT_LE(gathered(1), 2 * weight + 3 * gradient);
  EXPECT_NEAR(gathered(3) - gathered(1), 2 * weight, weight);
  EXPECT_LT(gathered(0), gathered(1));
  // Without resharding all parameters are whole by the end of forward.
  const double kept =
      llama({.dp_shard = 8, .zero_stage = 3, .reshard = false})[MemoryTerm::kGathered].v;
  EXPECT_GE(kept, 2 * kLlama7b);
}

TEST(ShardedMemory, AHigherZeroStageNeverNeedsMore) {
  for (const char* model : {"llama-2-7b", "llama-3-8b", "qwen2.5-7b"}) {
    for (const int dp : {2, 4, 8}) {
      double before = 1e30;
      for (int stage = 1; stage <= 3; ++stage) {
        const double peak =
            profile(h100_plan(model, dp, {.dp_shard = dp, .zero_stage = stage})).peak.v;
        EXPECT_LT(peak, before) << model << " dp " << dp << " ZeRO-" << stage;
        before = peak;
      }
    }
  }
}

TEST(ShardedMemory, RecomputingMoreLayersSavesMore) {
  const auto activations = [](int layers) {
    return llama({.dp_shard = 8,
                  .zero_stage = 1,
                  .recompute = Recompute::kFull,
                  .recompute_layers = layers})[MemoryTerm::kActivations]
        .v;
  };
  const double none = llama({.dp_shard = 8, .zero_stage = 1})[MemoryTerm::kActivations].v;
  const double all = activations(0);
  EXPECT_EQ(activations(32), all);
  EXPECT_LT(activations(24), activations(8));
  EXPECT_LT(activations(8), none);
  // Linear in the layers: each saves the same.
  EXPECT_NEAR(activations(8) - activations(24), 16 * (none - all) / 32, 0.1 * (none - all));
}

TEST(ShardedMemory, ContextParallelismSharesTheSequence) {
  const auto activations = [](int cp, CpKind kind) {
    return profile(h100_plan("llama-3-8b",
                             8,
                             {.dp_replicate = 8 / cp, .cp = cp, .cp_kind = kind},
                             8192))[MemoryTerm::kActivations]
        .v;
  };
  const double whole = activations(1, CpKind::kRing);
  for (const CpKind kind : {CpKind::kRing, CpKind::kUlysses}) {
    EXPECT_GE(activations(2, kind), whole / 2);
    EXPECT_LT(activations(2, kind), 0.6 * whole);
    EXPECT_LT(activations(4, kind), 0.35 * whole);
  }
}

TEST(ShardedMemory, ExpertsAreHeldOnceOverEp) {
  // Mixtral 8x7B: 46,702,792,704 parameters, of which 32 layers x 8 experts x 3 x 4096 x 14336.
  const double experts = 32.0 * 8 * 3 * 4096 * 14336;
  const double dense = 46'702'792'704.0 - experts;
  const auto bytes = [](const Layout& l) {
    return model_states(profile(h100_plan("mixtral-8x7b", 8, l)));
  };
  EXPECT_EQ(bytes({.dp_replicate = 8, .ep = 8}), 18 * (dense + experts / 8));
  EXPECT_EQ(bytes({.dp_replicate = 8, .ep = 2}), 18 * (dense + experts / 2));
  // Optimizer state of experts is sharded over the ranks that hold the same ones: 8 / ep.
  EXPECT_EQ(bytes({.dp_shard = 8, .ep = 2, .zero_stage = 1}),
            6 * (dense + experts / 2) + 12 * (dense / 8 + experts / 2 / 4));
  EXPECT_EQ(bytes({.dp_shard = 8, .ep = 8, .zero_stage = 3}), 18 * (dense / 8 + experts / 8));
}

TEST(ShardedMemory, WhatIsOffloadedLeavesTheDevice) {
  const Layout base{.dp_shard = 8, .zero_stage = 3};
  const MemoryProfile here = llama(base);
  Layout l = base;
  l.offload.optimizer = MemoryTier::kHost;
  EXPECT_EQ(llama(l)[MemoryTerm::kOptimizer].v, 0);
  l = base;
  l.offload.parameters = MemoryTier::kNvme;
  EXPECT_EQ(llama(l)[MemoryTerm::kWeights].v, 0);
  l = base;
  l.offload.activations = MemoryTier::kHost;
  // What is left: the layer at work, the buffer of one layer, the head.
  EXPECT_LT(llama(l)[MemoryTerm::kActivations].v, 0.25 * here[MemoryTerm::kActivations].v);
}

/// Layouts of small_model() with what the worker does not run yet.
std::vector<Layout> sharded_layouts() {
  using enum ScheduleKind;
  return {
      {.dp_shard = 4, .micro_batch = 1, .zero_stage = 2},
      {.dp_shard = 4, .micro_batch = 1, .zero_stage = 3},
      {.dp_replicate = 2, .dp_shard = 2, .micro_batch = 1, .zero_stage = 3, .prefetch = 2},
      {.dp_shard = 2, .micro_batch = 1, .zero_stage = 3, .reshard = false},
      {.dp_shard = 2, .pp = 2, .micro_batch = 1, .zero_stage = 2},
      {.dp_shard = 2, .pp = 2, .micro_batch = 1, .zero_stage = 3, .recompute = Recompute::kFull},
      {.dp_shard = 2,
       .pp = 2,
       .virtual_stages = 2,
       .micro_batch = 1,
       .zero_stage = 3,
       .schedule = kInterleaved},
      {.tp = 2, .cp = 2, .micro_batch = 1},
      {.cp = 4, .pp = 2, .micro_batch = 1, .zero_stage = 1},
      {.pp = 2, .micro_batch = 1, .recompute = Recompute::kFull, .recompute_layers = 1},
      {.pp = 2,
       .micro_batch = 1,
       .recompute = Recompute::kFull,
       .recompute_layers = 1,
       .schedule = kGpipe},
  };
}

// The planner judges by a short replay; it must be the peak of the whole step.
TEST(ShardedMemory, QuickPeakIsThePeakOfTheFullReplay) {
  ModelSpec tied = small_model();
  tied.tied_embeddings = true;
  for (const ModelSpec& m : {small_model(), tied}) {
    for (const Layout& l : sharded_layouts()) {
      for (const int64_t batch : {int64_t{8}, int64_t{24}, int64_t{64}}) {
        const Plan plan = ideal_plan(m, l, 16, batch);
        const CostModel cost = testing::ideal_cost(plan.cluster());
        StageCostCache cache;
        const Bytes peak = simulate(plan, cost, cache).report.peak_memory;
        EXPECT_LE(memory_floor(plan, cost, cache), peak) << summary(l);
        EXPECT_EQ(estimate(plan, cost, cache).peak_memory, peak)
            << summary(l) << " batch " << batch;
      }
    }
  }
}

}  // namespace
}  // namespace meshwright
