// SPDX-License-Identifier: Apache-2.0
// What each axis moves, against the closed forms: with free start-up and full exposure, time times
// bandwidth is the volume.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/unit/sim/plans.h"
#include "tests/unit/sim/step/step_shapes.h"

namespace meshwright {
namespace {

using testing::near_rel;
using testing::step_of;

constexpr double kTokens = 2048;  // of one micro-batch of one sequence

/// A GPT of one kind of layer whose communication costs bytes over 300 GB/s and nothing else.
StepProblem bare_problem() {
  StepProblem p = testing::gpt_problem(8, 4096, 32);
  p.model.dropout = 0;
  p.device.nvlink_efficiency = 1;
  FrameworkProfile& f = p.framework;
  f.collective_alpha_s = 0;
  f.tp_exposed = f.cp_exposed = f.ep_exposed = f.dp_exposed = f.pp_exposed = 1;
  f.fsdp_interference = 1;
  return p;
}

double bytes_of(const StepProblem& p, double seconds) {
  return seconds * p.device.nvlink_bandwidth;
}

// Two all-reduces of 2 s b h per layer forward and two backward; sequence parallelism turns each
// into a reduce-scatter and an all-gather, and gathers the input of each pair of matmuls again for
// the weight gradients.
TEST(StepVolumes, TensorParallel) {
  StepProblem p = bare_problem();
  const double all_reduce = 2 * 7.0 / 8 * 2 * kTokens * 4096;
  const ShardLayout shard{.tp = 8, .micro_batch = 1};
  const BlockCost plain = price_shard(p, shard).block;
  EXPECT_TRUE(near_rel(bytes_of(p, plain.tp_forward_s), 2 * all_reduce, 1e-12));
  EXPECT_TRUE(near_rel(bytes_of(p, plain.tp_s), 4 * all_reduce, 1e-12));
  p.work.sequence_parallel = true;
  EXPECT_TRUE(near_rel(
      bytes_of(p, price_shard(p, shard).block.tp_s), 4 * all_reduce + 2 * all_reduce / 4, 1e-12));
  p.work.sequence_parallel = false;
  p.work.recompute = RecomputeKind::kFull;
  EXPECT_TRUE(near_rel(bytes_of(p, price_shard(p, shard).block.tp_s), 6 * all_reduce, 1e-12));
}

// c - 1 steps of keys and values, 2 * 2 (s/c) b h_kv / t bytes each; backward about twice that.
TEST(StepVolumes, ContextParallelRing) {
  StepProblem p = bare_problem();
  p.model.kinds[0].attention.num_kv_heads = 8;
  const double kv_width = 8 * 128.0;
  const double forward = 3 * 2 * 2 * (kTokens / 4) * kv_width / 2;
  const BlockCost b = price_shard(p, {.tp = 2, .cp = 4, .micro_batch = 1}).block;
  EXPECT_TRUE(near_rel(bytes_of(p, b.cp_s), 3 * forward, 1e-12));
  // Replicated heads do not get narrower.
  const BlockCost wide = price_shard(p, {.tp = 1, .cp = 2, .micro_batch = 1}).block;
  EXPECT_TRUE(near_rel(bytes_of(p, wide.cp_s), 3 * 2 * 2 * (kTokens / 2) * kv_width, 1e-12));
}

// Dispatch and combine, forward and backward, 2 s b topk h (e - 1)/e bytes each.
TEST(StepVolumes, ExpertParallelAllToAll) {
  StepProblem p = bare_problem();
  p.model.kinds[0].ffn = {.num_experts = 16, .top_k = 2, .expert_width = 4096};
  const double one = 2 * kTokens * 2 * 4096 * 7.0 / 8;
  const ShardCost c = price_shard(p, {.ep = 8, .micro_batch = 1});
  EXPECT_TRUE(near_rel(bytes_of(p, c.block.ep_s), 4 * one, 1e-12));
  // Expert parallelism spreads experts and leaves attention whole (astra-sim/stage 30).
  const ShardCost whole = price_shard(p, {.micro_batch = 1});
  EXPECT_EQ(c.block.expert_params, whole.block.expert_params / 8);
  EXPECT_EQ(c.block.dense_params, whole.block.dense_params);
}

// Data-parallel gradients and ZeRO-1: 2 P (d - 1)/d elements a step. ZeRO-3: 3 P (d - 1)/d, for
// each micro-batch, because nothing is kept between them.
TEST(StepVolumes, ZeroStages) {
  StepProblem p = bare_problem();
  p.framework.gradient_bytes = 2;
  p.framework.zero3_nic_efficiency = p.framework.nic_efficiency;
  StepLayout l = testing::layout(1, 1, 8, 1, 4);
  const double ring = 7.0 / 8 * 2;  // bytes per parameter and pass
  const double all = total_parameters(p.model);
  for (const int zero : {0, 1}) {
    l.zero = zero;
    EXPECT_TRUE(near_rel(bytes_of(p, step_of(p, l).exposed_dp_s), 2 * ring * all, 1e-12)) << zero;
  }
  l.zero = 3;
  const double layers = all - (51200.0 + 2048) * 4096 - 2 * 4096;
  EXPECT_TRUE(near_rel(bytes_of(p, step_of(p, l).exposed_dp_s), 4 * 3 * ring * layers, 1e-9));
}

// b s d 2 B = 128 MiB at b 4, s 2048, d 8192: 2.68 ms at 50 GB/s (GB is 1e9); tensor ranks send a
// shard each.
TEST(StepVolumes, AnActivationBetweenStages) {
  const StepProblem p = testing::gpt_problem(1, 8192, 64);
  const double hop = price_shard(p, {.micro_batch = 4}).hop_bytes;
  EXPECT_EQ(hop, 128.0 * 1024 * 1024);
  EXPECT_NEAR(hop / 50e9 * 1e3, 2.68, 0.005);
  EXPECT_EQ(price_shard(p, {.tp = 8, .cp = 2, .micro_batch = 4}).hop_bytes, hop / 16);
}

TEST(StepVolumes, OneRankOfAnAxisCommunicatesNothing) {
  StepProblem p = bare_problem();
  p.model.kinds[0].ffn = {.num_experts = 16, .top_k = 2, .expert_width = 4096};
  const BlockCost b = price_shard(p, {.micro_batch = 1}).block;
  EXPECT_EQ(b.tp_s + b.tp_forward_s + b.cp_s + b.ep_s, 0);
}

TEST(StepVolumes, TimeIsMonotoneInEachBandwidthAlone) {
  EXPECT_TRUE(rc::check("slower links, slower steps", [] {
    StepProblem p = testing::gpt_problem(16, 4096, 32);
    p.model.kinds[0].ffn.num_experts = *rc::gen::element(0.0, 16.0);
    p.model.kinds[0].ffn.top_k = 2;
    p.model.kinds[0].ffn.expert_width = 4096;
    StepLayout l = testing::layout(*rc::gen::element(1.0, 2.0, 8.0),
                                   *rc::gen::element(1.0, 2.0, 4.0),
                                   *rc::gen::element(1.0, 4.0, 16.0),
                                   1,
                                   *rc::gen::element(4.0, 16.0));
    l.shard.cp = *rc::gen::element(1.0, 2.0);
    l.shard.ep = *rc::gen::element(1.0, 4.0, 16.0);
    l.zero = *rc::gen::element(0, 1, 2, 3);
    p.work.sequence_parallel = l.shard.tp > 1 && *rc::gen::arbitrary<bool>();
    const double t = step_of(p, l).total_s();
    for (double* bandwidth : {&p.device.nvlink_bandwidth,
                              &p.links.nic_bandwidth,
                              &p.device.memory_bandwidth,
                              &p.device.peak_bf16}) {
      const double before = *bandwidth;
      *bandwidth = before / 1.5;
      RC_ASSERT(step_of(p, l).total_s() >= t * (1 - 1e-12));
      *bandwidth = before;
    }
  }));
}

}  // namespace
}  // namespace meshwright
