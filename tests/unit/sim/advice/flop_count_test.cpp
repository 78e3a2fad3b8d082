// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/flop_count.h"

#include <gtest/gtest.h>

#include "sim/graph/model_graph.h"
#include "sim/spec/lora.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::make_plan;
using testing::make_problem;
using testing::near_rel;

Plan gpt3(Recompute recompute, bool flash = true) {
  return make_plan(
      make_problem(
          builtin_model("gpt3-175b"), builtin_cluster("8xa100-80g"), 2048, 1536, Precision::kBf16),
      {.tp = 8, .recompute = recompute, .flash_attention = flash});
}

// arXiv:2104.04473 eq. 3, for B=1536, s=2048, L=96, h=12288, V=51200 (this model has 50257 rows).
TEST(FlopCount, ModelAndHardwareAreMegatronsEquationThree) {
  const double B = 1536, s = 2048, L = 96, h = 12288;
  const auto V = static_cast<double>(builtin_model("gpt3-175b").vocab_size);
  const double model = 72 * B * s * L * h * h * (1 + s / (6 * h) + V / (12 * h * L));
  const double hardware = 96 * B * s * L * h * h * (1 + s / (6 * h) + V / (16 * L * h));
  const FlopCount none = step_flop(gpt3(Recompute::kNone));
  EXPECT_TRUE(near_rel(none.model.v, model, 1e-12));
  EXPECT_EQ(none.hardware, none.model);
  const FlopCount full = step_flop(gpt3(Recompute::kFull));
  EXPECT_EQ(full.model, none.model);
  EXPECT_TRUE(near_rel(full.hardware.v, hardware, 1e-12));
  // The causal half: the attention term alone is halved.
  EXPECT_TRUE(near_rel(
      full.causal.v, 72 * B * s * L * h * h * (1 + s / (12 * h) + V / (12 * h * L)), 1e-12));
}

// Full recompute counts the whole forward, as Megatron repeats it; our operator lists leave out the
// last projection, whose output no backward reads. Selective counts what the lists repeat.
TEST(FlopCount, RecomputeRepeatsWhatTheGraphRepeats) {
  for (const Recompute r : {Recompute::kFull, Recompute::kSelective}) {
    const Plan plan = gpt3(r, r == Recompute::kFull);
    const ModelGraph graph = build_model_graph(plan, 0);
    const BlockGraph& layer = graph.of(BlockKind::kDecoder);
    double repeated = 0;
    for (const OperatorStep& step : layer.recompute) {
      // The fused kernel's operator counts the causal half.
      repeated += step.op.flop.v * (step.op.kind == OpKind::kAttention ? 2 : 1);
    }
    for (const OperatorStep& step : layer.forward) {
      if (r == Recompute::kFull && step.op.param == ParamSlot::kDown) repeated += step.op.flop.v;
    }
    const double passes = 96.0 * plan.layout().tp * static_cast<double>(plan.num_micro_batches());
    const FlopCount flop = step_flop(plan);
    EXPECT_TRUE(near_rel((flop.hardware - flop.model).v, repeated * passes, 1e-9)) << to_string(r);
  }
}

TEST(FlopCount, MfuIsNeverOfHardwareFlop) {
  const Plan plan = gpt3(Recompute::kFull);
  const CostModel cost(plan.cluster(), nullptr);
  const Seconds step{100};
  const Utilization model = utilization(plan, cost, step, FlopDefinition::kModel);
  const Utilization hardware = utilization(plan, cost, step, FlopDefinition::kHardware);
  const Utilization causal = utilization(plan, cost, step, FlopDefinition::kCausal);
  EXPECT_EQ(model.mfu_definition, FlopDefinition::kModel);
  EXPECT_EQ(hardware.mfu_definition, FlopDefinition::kModel);
  EXPECT_EQ(hardware.mfu, model.mfu);
  EXPECT_EQ(causal.mfu_definition, FlopDefinition::kCausal);
  EXPECT_LT(causal.mfu, model.mfu);
  EXPECT_EQ(causal.hfu, model.hfu);
  EXPECT_TRUE(near_rel(model.hfu / model.mfu, 4.0 / 3, 0.01));  // less the head's share
  EXPECT_TRUE(near_rel(model.mfu, step_flop(plan).model.v / 100 / (8 * 312e12), 1e-12));
}

// A frozen weight costs 4 FLOP per token instead of 6; an adapter weight 6.
TEST(FlopCount, FrozenWeightsHaveNoGradient) {
  auto problem = std::make_shared<Problem>(gpt3(Recompute::kNone).problem());
  problem->workload.lora = LoraSpec{.rank = 16};
  double adapters = 0;
  for (const LogicalTensor& t : adapter_tensors(problem->model, 16))
    adapters += static_cast<double>(t.numel());
  const auto tokens = static_cast<double>(problem->workload.tokens_per_step());
  const FlopCount lora = step_flop(make_plan(problem, {.tp = 8}));
  const FlopCount all = step_flop(gpt3(Recompute::kNone));
  const double frozen = model_flop_per_token(problem->model, 0).v / 3;
  EXPECT_TRUE(near_rel((all.model - lora.model).v, (frozen - 6 * adapters) * tokens, 1e-9));
}

TEST(FlopCount, PackedDocumentsHaveLessAttention) {
  auto problem = std::make_shared<Problem>(gpt3(Recompute::kNone).problem());
  const auto seq = static_cast<double>(problem->workload.seq_len);
  problem->workload.document_lengths = {static_cast<int>(seq / 2)};
  const auto tokens = static_cast<double>(problem->workload.tokens_per_step());
  const FlopCount packed = step_flop(make_plan(problem, {.tp = 8}));
  const FlopCount whole = step_flop(gpt3(Recompute::kNone));
  const double attention = 12.0 * 96 * 12288 * seq * tokens;  // 12 L h s per token
  EXPECT_TRUE(near_rel((whole.model - packed.model).v, attention / 2, 1e-9));
  EXPECT_TRUE(near_rel((whole.causal - packed.causal).v, attention / 4, 1e-9));
}

TEST(FlopCount, NamesReadBack) {
  for (const std::string& name : flop_definition_names())
    EXPECT_EQ(to_string(*flop_definition_named(name)), name);
  EXPECT_FALSE(flop_definition_named("flops"));
}

}  // namespace
}  // namespace meshwright
