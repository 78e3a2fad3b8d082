// SPDX-License-Identifier: Apache-2.0
// Model states against the published figures of ZeRO and Megatron-LM.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/step/step_memory.h"
#include "tests/unit/sim/plans.h"
#include "tests/unit/sim/step/step_shapes.h"

namespace meshwright {
namespace {

constexpr StateConvention kConventions[] = {StateConvention::kMegatron,
                                            StateConvention::kDeepSpeed,
                                            StateConvention::kDeepSpeedBf16,
                                            StateConvention::kTorchFsdp,
                                            StateConvention::kFp32};

StepMemory states(StateConvention c, int zero, double dp, double dense, double experts = 0) {
  StepLayout l = testing::layout(1, 1, dp, 1, 1);
  l.zero = zero;
  return state_memory(c, l, dense, experts);
}

// arXiv:1910.02054 figure 1: 7.5 B parameters on 64 GPUs take 120, 31.4, 16.6 and 1.9 GB. DeepSpeed
// casts the gradients of what a rank updates to FP32, 4 B more.
TEST(StateMemory, SevenBillionOn64GpusIsTheZeroPapers) {
  const double p = 7.5e9;
  const auto gb = [&](int zero) {
    const double bytes = states(StateConvention::kDeepSpeed, zero, 64, p).allocated_bytes();
    return (bytes - 4 * p / (zero >= 1 ? 64 : 1)) / 1e9;
  };
  EXPECT_DOUBLE_EQ(gb(0), 120);
  EXPECT_NEAR(gb(1), 31.4, 0.05);  // 4 P + 12 P / d
  EXPECT_NEAR(gb(2), 16.6, 0.05);  // 2 P + 14 P / d
  EXPECT_NEAR(gb(3), 1.9, 0.05);   // 16 P / d
}

// 70 B in mixed precision: weights 140, gradients 140, optimizer 840 GB; 1,120 GB a GPU under plain
// data parallelism (not 560, which is Adam's moments).
TEST(StateMemory, SeventyBillionInMixedPrecision) {
  const StepMemory m = states(StateConvention::kDeepSpeed, 0, 8, 70e9);
  EXPECT_DOUBLE_EQ(m.weights_bytes, 140e9);
  EXPECT_DOUBLE_EQ(m.gradients_bytes, 140e9);
  EXPECT_DOUBLE_EQ(m.optimizer_bytes, 840e9 + 280e9);  // gradients in FP32 for the update
  EXPECT_DOUBLE_EQ(m.allocated_bytes(), 1120e9 + 280e9);
}

// Korthikanti et al. (arXiv:2205.05198), parameters and optimizer per GPU in GiB at tensor
// parallelism 8, read off a figure.
TEST(StateMemory, MegatronsEighteenBytesAreThePapers) {
  struct Case {
    double layers, hidden, heads, pp, gib;
  };
  for (const Case& c : {Case{48, 6144, 64, 1, 45.5625}, Case{105, 20480, 128, 35, 31.640625}}) {
    const StepProblem p = testing::gpt_problem(c.layers, c.hidden, c.heads);
    const double mean = 18 * total_parameters(p.model) / (8 * c.pp);
    EXPECT_NEAR(mean / 1073741824.0 / c.gib, 1, 0.02) << c.layers;
  }
}

TEST(StateMemory, AHigherZeroStageNeverNeedsMore) {
  EXPECT_TRUE(rc::check("stage k + 1 <= stage k", [] {
    const double dp = *rc::gen::element(1.0, 2.0, 3.0, 8.0, 64.0);
    StepLayout l = testing::layout(*rc::gen::element(1.0, 2.0, 8.0), 1, dp, 1, 1);
    l.shard.ep = *rc::gen::element(1.0, 2.0, 8.0);
    l.shard.cp = *rc::gen::element(1.0, 2.0);
    const double dense = 1e6 * *rc::gen::inRange(1, 100000);
    const double experts = 1e6 * *rc::gen::inRange(0, 100000);
    for (const StateConvention c : kConventions) {
      double before = 0;
      for (int zero = 0; zero <= 3; ++zero) {
        l.zero = zero;
        const double bytes = state_memory(c, l, dense, experts).allocated_bytes();
        RC_ASSERT(zero == 0 || bytes <= before * (1 + 1e-12));
        before = bytes;
      }
    }
  }));
}

TEST(StateMemory, OneReplicaShardsNothing) {
  for (const StateConvention c : kConventions) {
    for (int zero = 1; zero <= 3; ++zero) {
      EXPECT_EQ(states(c, zero, 1, 1e9).allocated_bytes(), states(c, 0, 1, 1e9).allocated_bytes());
    }
  }
}

// DeepSpeed 5305: fully sharded states are smaller, but two layers stand gathered.
TEST(StateMemory, FullShardingHoldsLayersGathered) {
  StepProblem p = testing::gpt_problem(4, 4096, 32);
  p.work.attention = AttentionKernel::kFlash;
  StepLayout l = testing::layout(1, 1, 2, 1, 1);
  split_layers(4, l);
  l.zero = 2;
  EXPECT_EQ(peak_memory(p, StateConvention::kTorchFsdp, l).gathered_bytes, 0);
  l.zero = 3;
  const double layer = dense_parameters(p.model, p.model.kinds[0]);
  const double table = p.model.vocab * p.model.hidden;
  EXPECT_DOUBLE_EQ(peak_memory(p, StateConvention::kTorchFsdp, l).gathered_bytes,
                   4 * layer + 6 * std::max(layer, table));
}

// DeepSpeed 1378: first, middle and last stage peak at 10,824, 8,041 and 10,981 MB: the tables are
// at the ends.
TEST(StateMemory, EndsOfAPipelineHoldTheTables) {
  StepProblem p = testing::gpt_problem(24, 2048, 16);
  p.model.tied_embeddings = false;
  StepLayout l = testing::layout(1, 4, 1, 1, 1);  // one micro-batch: equal activations
  split_layers(24, l);
  const ShardCost c = price_shard(p, l.shard);
  const double last = last_stage_memory(p, StateConvention::kMegatron, l).weights_bytes / 2;
  const double middle = 6 * c.block.dense_params;
  EXPECT_DOUBLE_EQ(last - middle, c.head_params + c.final_norm_params);
  EXPECT_GT(c.embed_params, 0.9 * c.head_params);
}

}  // namespace
}  // namespace meshwright
