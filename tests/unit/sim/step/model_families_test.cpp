// SPDX-License-Identifier: Apache-2.0
// Every built-in model in the step model's terms: its stages hold each parameter once, and a rank
// as much as the placement table says.
#include <gtest/gtest.h>

#include <string>

#include "sim/schedule/placement.h"
#include "sim/spec/logical_tensors.h"
#include "sim/step/shard_cost.h"
#include "sim/step/step_memory.h"
#include "tests/unit/sim/plans.h"
#include "tests/unit/sim/step/step_shapes.h"

namespace meshwright {
namespace {

StepProblem problem_of(const ModelSpec& model) {
  StepProblem p = testing::gpt_problem(1, 1024, 8);  // its device
  p.model = model_shape(model);
  p.work.attention = AttentionKernel::kFlash;
  return p;
}

/// Of all stages together; both ends of a pipeline hold a tied table.
double sum_of_stages(const StepProblem& p, const ShardLayout& shard, double pp) {
  const ShardCost c = price_shard(p, shard);
  const double tied = p.model.tied_embeddings && pp == 1 ? c.head_params : 0;
  return c.layers * (c.block.dense_params + c.block.expert_params) + c.embed_params +
         c.head_params + c.final_norm_params - tied;
}

TEST(ModelFamilies, StepModelCountsEveryParameterOnce) {
  for (const std::string& name : builtin_models()) {
    const ModelSpec spec = load_model(name).value();
    const auto count = static_cast<double>(parameter_count(spec));
    const StepProblem p = problem_of(spec);
    EXPECT_EQ(total_parameters(p.model), count) << name;
    EXPECT_TRUE(testing::near_rel(sum_of_stages(p, {}, 1), count, 1e-13)) << name;
    const double table = p.model.tied_embeddings ? p.model.vocab * p.model.hidden : 0;
    EXPECT_TRUE(testing::near_rel(sum_of_stages(p, {}, 4), count + table, 1e-13)) << name;
    // The states of one rank: 18 B per parameter (Megatron-LM).
    const StepMemory m = peak_memory(p, StateConvention::kMegatron, testing::layout(1, 1, 1, 1, 8));
    StepLayout l = testing::layout(1, 1, 1, 1, 8);
    split_layers(p.model.num_layers(), l);
    EXPECT_TRUE(testing::near_rel(
        m.weights_bytes + m.gradients_bytes + m.optimizer_bytes, 18 * count, 1e-13))
        << name;
  }
}

TEST(ModelFamilies, ActiveParametersAreThoseOfTheSpec) {
  for (const std::string& name : builtin_models()) {
    const ModelSpec spec = load_model(name).value();
    EXPECT_EQ(active_parameters(model_shape(spec)),
              static_cast<double>(active_parameter_count(spec)))
        << name;
  }
}

// cli99/llm-analysis 19: norms divided by tp, though each rank holds them whole; sglang 19086: key
/// and value heads are replicated once tp exceeds them.
TEST(ModelFamilies, ATensorParallelRankHoldsWhatThePlacementSays) {
  for (const std::string& name : builtin_models()) {
    const ModelSpec spec = load_model(name).value();
    for (const int tp : {2, 4, 8, 16}) {
      if (spec.num_heads % tp != 0) continue;
      if (spec.num_kv_heads % tp != 0 && tp % spec.num_kv_heads != 0) continue;
      if (spec.d_ff % tp != 0 || spec.vocab_size % tp != 0) continue;  // uneven shards
      if (spec.moe && spec.moe->d_ff_expert % tp != 0) continue;
      const auto problem = testing::make_problem(
          spec, testing::builtin_cluster(std::to_string(tp) + "xh100"), 512, 8, Precision::kBf16);
      const Plan plan = testing::make_plan(problem, {.tp = tp});
      const double degree = tp;
      const auto held = static_cast<double>(PlacementTable(plan).of_rank(0).parameters());
      EXPECT_TRUE(testing::near_rel(
          sum_of_stages(problem_of(spec), {.tp = degree, .expert_tp = degree}, 1), held, 1e-13))
          << name << " tp" << tp;
    }
  }
}

TEST(ModelFamilies, StagesOfThePlacementSumToTheModel) {
  for (const std::string& name : builtin_models()) {
    const ModelSpec spec = load_model(name).value();
    for (const int pp : {1, 2, 4, 6}) {
      const auto problem = testing::make_problem(
          spec, testing::builtin_cluster(std::to_string(pp) + "xh100"), 512, 8, Precision::kBf16);
      int64_t sum = 0;
      for (const RankPlacement& p : stage_placements(testing::make_plan(problem, {.pp = pp}))) {
        sum += p.parameters();
      }
      const int64_t table = spec.tied_embeddings && pp > 1 ? spec.vocab_size * spec.d_model : 0;
      EXPECT_EQ(sum, parameter_count(spec) + table) << name << " pp" << pp;
    }
  }
}

}  // namespace
}  // namespace meshwright
