// SPDX-License-Identifier: Apache-2.0
#include "sim/step/step_memory.h"

#include <gtest/gtest.h>

#include "tests/unit/sim/step/step_shapes.h"

namespace meshwright {
namespace {

constexpr double kGiB = 1073741824.0;

/// Activations of the first stage, embedding left out.
double first_stage_activations(const StepProblem& p, StepLayout l) {
  split_layers(p.model.num_layers(), l);
  return micro_batches_in_flight(l, 0) * l.layers_first *
         saved_activation_bytes(p, l.shard, p.model.kinds[0]) / kGiB;
}

struct Korthikanti {
  const char* name;
  double hidden, heads, layers, micro_batch, pp, vpp;
  double none, selective, selective_sp, full;
};

// arXiv:2205.05198, table 3's models at tensor parallelism 8 and sequence 2048.
class KorthikantiActivations : public ::testing::TestWithParam<Korthikanti> {};

TEST_P(KorthikantiActivations, AreExact) {
  const Korthikanti& k = GetParam();
  StepProblem p = testing::gpt_problem(k.layers, k.hidden, k.heads);
  StepLayout l = testing::layout(8, k.pp, 1, k.micro_batch, 8 * k.pp);
  l.vpp = k.vpp;
  EXPECT_NEAR(first_stage_activations(p, l), k.none, 1e-9);
  p.work.recompute = RecomputeKind::kCore;
  EXPECT_NEAR(first_stage_activations(p, l), k.selective, 1e-4);
  p.work.sequence_parallel = true;
  EXPECT_NEAR(first_stage_activations(p, l), k.selective_sp, 1e-9);
  p.work.sequence_parallel = false;
  p.work.recompute = RecomputeKind::kFull;
  EXPECT_NEAR(first_stage_activations(p, l), k.full, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Paper,
    KorthikantiActivations,
    ::testing::Values(
        Korthikanti{"22B", 6144, 64, 48, 4, 1, 1, 59.25, 29.25, 9.5625, 4.5},
        Korthikanti{"175B", 12288, 96, 96, 1, 8, 3, 66.84375, 37.78125, 12.3515625, 5.8125},
        Korthikanti{
            "530B", 20480, 128, 105, 1, 35, 3, 114.0234375, 70.5859375, 23.076171875, 10.859375},
        Korthikanti{"1T", 25600, 160, 128, 1, 64, 1, 131.25, 81.25, 26.5625, 12.5}),
    [](const auto& tested) { return tested.param.name; });

TEST(StepMemory, StatesFollowTheEngines) {
  // ZeRO (arXiv:1910.02054): 16, 4 + 12/d, 2 + 14/d, 16/d; Megatron-LM: 18, 6 + 12/d.
  StepLayout l = testing::layout(1, 1, 8, 1, 1);
  const auto bytes = [&](StateConvention c, int zero) {
    l.zero = zero;
    return state_memory(c, l, 1, 0).allocated_bytes();
  };
  EXPECT_DOUBLE_EQ(bytes(StateConvention::kDeepSpeed, 0), 16 + 4);
  EXPECT_DOUBLE_EQ(bytes(StateConvention::kDeepSpeed, 1), 4 + 16.0 / 8);  // and FP32 gradients
  EXPECT_DOUBLE_EQ(bytes(StateConvention::kDeepSpeed, 3), (4 + 16) / 8.0);
  EXPECT_DOUBLE_EQ(bytes(StateConvention::kDeepSpeedBf16, 1), 8 + 12.0 / 8);
  EXPECT_DOUBLE_EQ(bytes(StateConvention::kMegatron, 0), 18);
  EXPECT_DOUBLE_EQ(bytes(StateConvention::kMegatron, 1), 6 + 12.0 / 8);
  EXPECT_DOUBLE_EQ(bytes(StateConvention::kTorchFsdp, 3), 16.0 / 8);
}

TEST(StepMemory, ExpertsShardOverTheirOwnReplicas) {
  StepLayout l = testing::layout(2, 1, 8, 1, 1);
  l.zero = 1;
  l.shard.ep = 8;  // 16 ranks, so 2 replicas of an expert
  EXPECT_DOUBLE_EQ(state_memory(StateConvention::kMegatron, l, 0, 1).allocated_bytes(),
                   6 + 12.0 / 2);
}

TEST(StepMemory, MicroBatchesInFlight) {
  StepLayout l = testing::layout(1, 4, 1, 1, 16);
  EXPECT_EQ(micro_batches_in_flight(l, 0), 4);
  EXPECT_EQ(micro_batches_in_flight(l, 3), 1);
  l.micro_batches = 2;
  EXPECT_EQ(micro_batches_in_flight(l, 0), 2);  // m < p
  l.micro_batches = 16;
  l.vpp = 2;
  EXPECT_DOUBLE_EQ(micro_batches_in_flight(l, 0), 4 * (1 + 3.0 / 8));  // x (1 + (p-1)/(p v))
  l.schedule = StepSchedule::kZeroBubble2;
  EXPECT_EQ(micro_batches_in_flight(l, 0), 7);  // 2 p - 1
}

TEST(StepMemory, TheBoundIsAboveTheEstimate) {
  for (const double gib : {0.5, 8.0, 80.0}) {
    EXPECT_GT(memory_upper_bound(gib * kGiB), 1.1 * gib * kGiB);
  }
}

}  // namespace
}  // namespace meshwright
