// SPDX-License-Identifier: Apache-2.0
// Adapters beside a frozen base: parameters, states, traffic and the program.
#include <gtest/gtest.h>

#include "sim/memory/replay.h"
#include "sim/report/traffic.h"
#include "sim/schedule/program_check.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::make_plan;
using testing::make_problem;

Plan lora_plan(const std::string& model, int devices, const Layout& layout, const LoraSpec& lora) {
  auto problem = *make_problem(builtin_model(model),
                               builtin_cluster(std::to_string(devices) + "xh100"),
                               2048,
                               64,
                               Precision::kBf16);
  problem.workload.lora = lora;
  return make_plan(std::make_shared<const Problem>(std::move(problem)), layout);
}

int64_t trained(const Plan& plan) {
  int64_t sum = 0;
  for (const Bucket& b : PlacementTable(plan).of_rank(0).buckets) sum += b.frozen ? 0 : b.numel;
  return sum;
}

// LoRA of every projection of Llama-2-7B at rank 16, as PEFT counts it: per layer 4 attention
// projections of 4096 x 4096 and 3 of 4096 x 11008.
TEST(Lora, AdapterParameters) {
  const int64_t layer = 16 * (4 * (4096 + 4096) + 3 * (4096 + 11008));
  EXPECT_EQ(trained(lora_plan("llama-2-7b", 1, {}, {.rank = 16})), 32 * layer);
  EXPECT_EQ(32 * layer, 39'976'960);
  // Grouped-query: key and value of 1024 outputs (Llama-3-8B).
  const int64_t grouped = 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336));
  EXPECT_EQ(trained(lora_plan("llama-3-8b", 1, {}, {.rank = 16})), 32 * grouped);
}

double memory(const Plan& plan, MemoryTerm term) {
  return replay_memory(plan, build_program(plan), 0)[term].v;
}

// QLoRA (arXiv:2305.14314, section 3): 0.5 bits of constants per weight become 0.127.
TEST(Lora, TheFrozenBaseHasWeightsAlone) {
  constexpr double kBase = 6'738'415'616.0;
  constexpr double kAdapters = 39'976'960.0;
  const Plan lora = lora_plan("llama-2-7b", 1, {}, {.rank = 16});
  EXPECT_EQ(memory(lora, MemoryTerm::kWeights), 2 * (kBase + kAdapters));
  EXPECT_EQ(memory(lora, MemoryTerm::kGradients), 4 * kAdapters);
  EXPECT_EQ(memory(lora, MemoryTerm::kOptimizer), 12 * kAdapters);
  const Plan qlora = lora_plan("llama-2-7b", 1, {}, {.rank = 16, .base = BaseFormat::kNf4});
  EXPECT_NEAR(memory(qlora, MemoryTerm::kWeights), 4.127 / 8 * kBase + 2 * kAdapters, 1e6);
  const Plan sharded = lora_plan("llama-2-7b", 8, {.dp_shard = 8, .zero_stage = 3}, {.rank = 16});
  EXPECT_EQ(memory(sharded, MemoryTerm::kWeights), 2 * (kBase + kAdapters) / 8);
}

TEST(Lora, OnlyAdaptersAreReduced) {
  const Plan plan = lora_plan("llama-2-7b", 8, {.dp_replicate = 8}, {.rank = 16});
  for (const AxisTraffic& t : step_traffic(plan, 0)) {
    if (t.axis == "dp") {
      EXPECT_EQ(t.payload.v, 4 * 39'976'960.0);
    }
  }
}

TEST(Lora, ProgramsAreCompleteOnEveryAxis) {
  const std::vector<Layout> layouts = {
      {.dp_replicate = 8},
      {.dp_shard = 8, .zero_stage = 3},
      {.dp_shard = 2, .tp = 2, .sp = true, .pp = 2, .zero_stage = 1},
      {.tp = 2, .pp = 4, .schedule = ScheduleKind::kZbH1},
      {.dp_shard = 4, .tp = 2, .zero_stage = 2, .recompute = Recompute::kFull},
  };
  for (const Layout& l : layouts) {
    const Plan plan = lora_plan("qwen2.5-7b", 8, l, {.rank = 8});
    const auto error = check_program(plan, build_program(plan));
    EXPECT_FALSE(error) << to_string(*error);
    // Adapters split like their projection: all ranks together hold each element.
    EXPECT_GT(replay_memory(plan, build_program(plan), 0).peak.v, 0);
  }
}

TEST(Lora, ExpertsStayFrozen) {
  const Plan plan = lora_plan("mixtral-8x7b", 8, {.dp_replicate = 8, .ep = 8}, {.rank = 8});
  for (const Bucket& b : PlacementTable(plan).of_rank(0).buckets) {
    if (b.experts) {
      EXPECT_TRUE(b.frozen);
    }
  }
  EXPECT_FALSE(check_program(plan, build_program(plan)).has_value());
}

}  // namespace
}  // namespace meshwright
