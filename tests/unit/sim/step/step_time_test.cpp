// SPDX-License-Identifier: Apache-2.0
#include "sim/step/step_time.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/step/gemm_time.h"
#include "tests/unit/sim/step/step_shapes.h"

namespace meshwright {
namespace {

using testing::step_of;

TEST(StepTime, OneRankHasNoCommunicationAndNoBubble) {
  const StepTerms t = step_of(testing::gpt_problem(24, 2048, 16), testing::layout(1, 1, 1, 2, 32));
  EXPECT_EQ(t.exposed_tp_s + t.exposed_cp_s + t.exposed_ep_s + t.exposed_pp_s + t.exposed_dp_s, 0);
  EXPECT_EQ(t.bubble_s, 0);
  EXPECT_EQ(t.other_s, 0);
  EXPECT_GT(t.compute_s, 0);
}

TEST(StepTime, NeverFasterThanTheDevice) {
  const StepProblem p = testing::gpt_problem(48, 8192, 64);
  const StepTerms t = step_of(p, testing::layout(8, 8, 1, 1, 64));
  const double ideal =
      model_flops(p.model, p.work.global_batch, p.work.seq, true) / (64 * p.device.peak_bf16);
  EXPECT_GT(t.total_s(), ideal);
  EXPECT_LT(t.total_s(), 5 * ideal);
}

TEST(StepTime, BubbleIsThatOfTheSchedule) {
  // Equal stages: (p - 1)(F + B) for 1F1B, over v when interleaved (arXiv:2104.04473).
  StepProblem p = testing::gpt_problem(32, 4096, 32);
  p.model.vocab = 1;
  StepLayout l = testing::layout(1, 8, 1, 1, 64);
  const StepTerms plain = step_of(p, l);
  EXPECT_NEAR(plain.bubble_s / (plain.compute_s / 64), 7, 0.05);
  l.vpp = 4;
  EXPECT_NEAR(step_of(p, l).bubble_s, plain.bubble_s / 4, 1e-9);
  l.vpp = 1;
  l.schedule = StepSchedule::kZeroBubble1;
  EXPECT_LT(step_of(p, l).bubble_s, plain.bubble_s / 2);
  l.schedule = StepSchedule::kZeroBubble2;
  EXPECT_LT(step_of(p, l).bubble_s, plain.bubble_s / 10);
}

TEST(StepTime, MissingMicroBatchesLeaveSlotsOfInterleavedPartsIdle) {
  // One micro-batch passes p v parts one after the other: as long as p whole stages.
  StepProblem p = testing::gpt_problem(32, 4096, 32);
  p.model.vocab = 1;
  StepLayout l = testing::layout(1, 8, 1, 1, 1);
  const double plain = step_of(p, l).bubble_s;
  l.vpp = 4;
  EXPECT_NEAR(step_of(p, l).bubble_s / plain, 1, 0.01);
}

TEST(StepTime, RecomputeCostsOneForward) {
  StepProblem p = testing::gpt_problem(24, 4096, 32);
  const StepLayout l = testing::layout(1, 1, 1, 2, 32);
  const ShardCost cost = price_shard(p, l.shard);
  EXPECT_EQ(cost.block.recompute_s, 0);
  p.work.recompute = RecomputeKind::kFull;
  const ShardCost full = price_shard(p, l.shard);
  EXPECT_DOUBLE_EQ(full.block.recompute_s, full.block.forward_s);
  p.work.recompute = RecomputeKind::kCore;
  const ShardCost core = price_shard(p, l.shard);
  EXPECT_GT(core.block.recompute_s, 0);
  EXPECT_LT(core.block.recompute_s, 0.5 * core.block.forward_s);
}

TEST(StepTime, SmallLayersWaitForTheHost) {
  StepProblem p = testing::gpt_problem(24, 1024, 16);
  p.framework.host_layer_s = 2e-3;
  const StepTerms t = step_of(p, testing::layout(1, 1, 1, 1, 8));
  EXPECT_NEAR(t.total_s() / (8 * 24 * 6e-3), 1, 0.1);  // (1 + host_backward) issues per layer
  EXPECT_GT(t.host_s, 0.5 * t.total_s());
}

TEST(StepTime, MisalignedHeadsLeaveTheTensorCores) {
  StepProblem p = testing::gpt_problem(1, 4096, 32);
  const double aligned = price_shard(p, {}).block.forward_s;
  p.model.kinds[0].attention.head_dim = p.model.kinds[0].attention.v_head_dim = 126;
  EXPECT_GT(price_shard(p, {}).block.forward_s, 1.5 * aligned);
}

TEST(StepTime, FrozenWeightsHaveNoGradients) {
  StepProblem p = testing::gpt_problem(24, 4096, 32);
  const StepLayout l = testing::layout(1, 1, 8, 1, 8);
  const StepTerms full = step_of(p, l);
  p.work.lora = true;
  const StepTerms lora = step_of(p, l);
  EXPECT_EQ(price_shard(p, l.shard).block.weight_grad_s, 0);
  EXPECT_EQ(lora.exposed_dp_s, 0);
  EXPECT_EQ(lora.optimizer_s, 0);
  EXPECT_LT(lora.compute_s / full.compute_s, 0.8);
}

TEST(StepTime, DataParallelVolumeIsTheRings) {
  // 2 (d - 1)/d bytes per gradient byte.
  StepProblem p = testing::gpt_problem(2, 1024, 16);
  p.framework.gradient_bytes = 2;
  const StepLayout l = testing::layout(1, 1, 8, 1, 1);
  const double bytes = 2 * 7.0 / 8 * 2 * total_parameters(p.model);
  const double nvlink = p.device.nvlink_bandwidth * p.device.nvlink_efficiency;
  EXPECT_NEAR(step_of(p, l).exposed_dp_s / (bytes / nvlink), 1, 1e-6);
}

TEST(StepTime, LayersAreSplitAsMegatronDoes) {
  StepLayout l = testing::layout(1, 8, 1, 1, 8);
  split_layers(96, l);
  EXPECT_EQ(l.layers_max, 12);
  EXPECT_EQ(l.layers_last, 12);
  split_layers(126, l);  // embedding and loss count as a layer each
  EXPECT_EQ(l.layers_max, 16);
  EXPECT_EQ(l.layers_first, 15);
  EXPECT_EQ(l.layers_last, 15);
}

TEST(GemmTime, PaysWholeWaves) {
  const GemmRate a100{.flops = 250e12, .num_sms = 108, .bytes_per_second = 1.6e12};
  const double one_wave = gemm_time(a100, 256 * 12, 128 * 9, 4096);       // 108 tiles
  const double two_waves = gemm_time(a100, 256 * 12, 128 * 9 + 8, 4096);  // 120 tiles
  EXPECT_GT(two_waves, 1.2 * one_wave);
  EXPECT_GE(gemm_time(a100, 64, 64, 64), 3 * 2 * 64 * 64 / a100.bytes_per_second);
}

void terms_are_positive_and_monotone() {
  StepProblem p = testing::gpt_problem(32, 4096, 32);
  StepLayout l = testing::layout(*rc::gen::element(1.0, 2.0, 4.0, 8.0),
                                 *rc::gen::element(1.0, 2.0, 4.0, 8.0),
                                 *rc::gen::element(1.0, 2.0, 16.0),
                                 *rc::gen::element(1.0, 2.0, 4.0),
                                 *rc::gen::element(8.0, 16.0, 64.0));
  l.zero = *rc::gen::element(0, 1, 3);
  l.vpp = l.pp > 1 ? *rc::gen::element(1.0, 2.0) : 1;
  p.work.recompute = *rc::gen::element(RecomputeKind::kNone, RecomputeKind::kFull);
  const StepTerms t = step_of(p, l);
  for (const double x : {t.compute_s,
                         t.recompute_s,
                         t.exposed_tp_s,
                         t.exposed_cp_s,
                         t.exposed_ep_s,
                         t.exposed_pp_s,
                         t.exposed_dp_s,
                         t.bubble_s,
                         t.optimizer_s,
                         t.host_s,
                         t.other_s}) {
    RC_ASSERT(x >= 0.0);
  }
  // A slower link or memory never makes a step faster; a longer micro-batch takes longer.
  StepProblem slow = p;
  slow.device.nvlink_bandwidth /= 2;
  slow.links.nic_bandwidth /= 2;
  RC_ASSERT(step_of(slow, l).total_s() >= t.total_s());
  slow = p;
  slow.device.memory_bandwidth /= 2;
  RC_ASSERT(step_of(slow, l).total_s() > t.total_s());
  StepProblem longer = p;
  longer.work.seq *= 2;
  RC_ASSERT(step_of(longer, l).total_s() > t.total_s());
}

TEST(StepTime, TermsArePositiveAndMonotone) {
  EXPECT_TRUE(rc::check(terms_are_positive_and_monotone));
}

}  // namespace
}  // namespace meshwright
