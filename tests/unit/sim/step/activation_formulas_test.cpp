// SPDX-License-Identifier: Apache-2.0
// Saved activations against the closed forms of Korthikanti et al. (arXiv:2205.05198, table 2) and
// of Megatron-LM's theoretical_memory_usage.py.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/step/step_memory.h"
#include "tests/unit/sim/plans.h"
#include "tests/unit/sim/step/step_shapes.h"

namespace meshwright {
namespace {

using testing::near_rel;

struct Sizes {
  double s, b, h, a, t;
};

double saved(StepProblem p, const Sizes& z, RecomputeKind recompute, bool sp) {
  p.work.seq = z.s;
  p.work.recompute = recompute;
  p.work.sequence_parallel = sp;
  return saved_activation_bytes(p, {.tp = z.t, .micro_batch = z.b}, p.model.kinds[0]);
}

TEST(ActivationFormulas, AreTableTwo) {
  EXPECT_TRUE(rc::check("table 2", [] {
    const double head_dim = *rc::gen::element(64.0, 128.0);
    Sizes z{.s = 1024.0 * *rc::gen::inRange(1, 9),
            .b = 1.0 * *rc::gen::inRange(1, 5),
            .h = 0,
            .a = 8.0 * *rc::gen::inRange(1, 17),
            .t = *rc::gen::element(1.0, 2.0, 4.0, 8.0)};
    z.h = head_dim * z.a;
    const StepProblem p = testing::gpt_problem(1, z.h, z.a);
    const double sbh = z.s * z.b * z.h;
    const double scores = 5 * z.a * z.s / z.h;
    using enum RecomputeKind;
    RC_ASSERT(near_rel(saved(p, z, kNone, false), sbh * (10 + 24 / z.t + scores / z.t), 1e-12));
    RC_ASSERT(near_rel(saved(p, z, kNone, true), sbh / z.t * (34 + scores), 1e-12));
    RC_ASSERT(near_rel(saved(p, z, kCore, false), sbh * (10 + 24 / z.t), 1e-12));
    RC_ASSERT(near_rel(saved(p, z, kCore, true), 34 * sbh / z.t, 1e-12));
    RC_ASSERT(near_rel(saved(p, z, kFull, false), 2 * sbh, 1e-12));
    RC_ASSERT(near_rel(saved(p, z, kFull, true), 2 * sbh / z.t, 1e-12));
  }));
}

// Megatron-LM: sbh (18 + 4 f/h) / t with selective recompute and sequence parallelism.
TEST(ActivationFormulas, AnyFeedForwardWidth) {
  StepProblem p = testing::gpt_problem(1, 4096, 32);
  const Sizes z{.s = 2048, .b = 2, .h = 4096, .a = 32, .t = 4};
  for (const double f : {4096.0, 11008.0, 16384.0, 40960.0}) {
    p.model.kinds[0].ffn.width = f;
    EXPECT_TRUE(near_rel(
        saved(p, z, RecomputeKind::kCore, true), z.s * z.b * (18 * z.h + 4 * f) / z.t, 1e-12));
  }
}

// The first stage's embedding dropout keeps a mask s b h p / t of its micro-batches in flight; the
// last stage final norm's and head's inputs, 4 s b h / t, and the logits.
TEST(ActivationFormulas, EndsOfThePipeline) {
  StepProblem p = testing::gpt_problem(32, 4096, 32);
  p.work.recompute = RecomputeKind::kCore;
  p.work.sequence_parallel = true;
  StepLayout l = testing::layout(4, 4, 1, 2, 16);
  split_layers(32, l);
  const double sbh = 2048.0 * 2 * 4096;
  const double layer = 34 * sbh / 4;
  StepProblem dry = p;  // without the head's logits and table, so that the first stage is fullest
  dry.model.vocab = 1;
  EXPECT_TRUE(near_rel(peak_memory(dry, StateConvention::kMegatron, l).activations_bytes,
                       4 * (8 * layer + sbh / 4),
                       1e-12));
  const StepMemory last = last_stage_memory(p, StateConvention::kMegatron, l);
  EXPECT_TRUE(near_rel(last.activations_bytes, 8 * layer + 4 * sbh / 4, 1e-12));
  // Megatron's vocabulary-parallel loss: BF16 logits, the FP32 copy (the paper's 4 s b V / t), BF16
  // gradient.
  EXPECT_TRUE(near_rel(last.logits_bytes, (2 + 4 + 2) * 2048.0 * 2 * 51200 / 4, 1e-12));
}

// Replicated residuals of 80 layers at b 4, s 2048, d 8192 are 10.7 GB; sequence parallelism over 8
// ranks leaves 1.3 GB of them (not a saving of 59 GB).
TEST(ActivationFormulas, SequenceParallelismShardsOneReplicatedTensorPerLayer) {
  const StepProblem p = testing::gpt_problem(80, 8192, 64);
  const Sizes z{.s = 2048, .b = 4, .h = 8192, .a = 64, .t = 8};
  EXPECT_NEAR(80 * saved(p, z, RecomputeKind::kFull, false) / 1e9, 10.74, 0.005);
  EXPECT_NEAR(80 * saved(p, z, RecomputeKind::kFull, true) / 1e9, 1.342, 0.0005);
}

// Megatron-LM 1784: experts' activations grow with top_k, not with the number of experts.
TEST(ActivationFormulas, ExpertsSaveWhatTheirTokensNeed) {
  StepProblem p = testing::gpt_problem(1, 4096, 32);
  p.model.dropout = 0;
  p.model.gated_ffn = true;
  FfnShape& f = p.model.kinds[0].ffn;
  f = {.num_experts = 8, .top_k = 2, .expert_width = 14336};
  const auto bytes = [&] { return saved_activation_bytes(p, {}, p.model.kinds[0]); };
  const double two_of_eight = bytes();
  f.num_experts = 64;
  const double router = 8 * 56 * p.work.seq;  // scores and probabilities of 56 experts more
  EXPECT_DOUBLE_EQ(bytes() - two_of_eight, router);
  f.num_experts = 8;
  f.top_k = 4;
  // Two rows in and out, and three tensors of the expert's width, for each further expert.
  EXPECT_DOUBLE_EQ(bytes() - two_of_eight, 2 * p.work.seq * (4 * 4096 + 6 * 14336.0));
}

}  // namespace
}  // namespace meshwright
