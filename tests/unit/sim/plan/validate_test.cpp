// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "sim/plan/executor_support.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::make_problem;

std::shared_ptr<const Problem> llama_70b(int64_t seq_len = 4096, int64_t global_batch = 1024) {
  return make_problem(builtin_model("llama-3-70b"),
                      builtin_cluster("64xa100-80g"),
                      seq_len,
                      global_batch,
                      Precision::kBf16);
}

/// The violations of `layout`, each as "field: rule; remedy".
std::vector<std::string> broken(const std::shared_ptr<const Problem>& problem,
                                const Layout& layout) {
  const ValidationOutcome outcome = validate(problem, layout);
  EXPECT_EQ(outcome.plan.has_value(), outcome.violations.empty());
  std::vector<std::string> out;
  for (const Error& e : outcome.violations) {
    EXPECT_EQ(e.where, (e.field == "seq_len" ? "/workload/" : "/layout/") + e.field);
    EXPECT_FALSE(e.value.empty());
    out.push_back(e.field + "=" + e.value + ": " + e.rule + "; " + e.remedy);
  }
  return out;
}

std::vector<std::string> broken(const Layout& layout) { return broken(llama_70b(), layout); }

using Messages = std::vector<std::string>;

TEST(Validate, LegalLayoutBecomesAPlanWithStages) {
  const auto outcome = validate(llama_70b(), {.dp_shard = 4, .tp = 8, .pp = 2, .zero_stage = 1});
  ASSERT_TRUE(outcome.plan.has_value());
  EXPECT_EQ(outcome.plan->layout().stages, (std::vector{40, 40}));
  EXPECT_EQ(outcome.plan->num_micro_batches(), 256);
  EXPECT_EQ(outcome.plan->blocks_of_stage(0), (std::pair{0, 41}));
  EXPECT_EQ(outcome.plan->blocks_of_stage(1), (std::pair{41, 82}));
  EXPECT_EQ(outcome.plan->stage_of_block(40), 0);
  EXPECT_EQ(outcome.plan->stage_of_block(41), 1);
}

TEST(Validate, TpThatDoesNotDivideTheHeads) {
  const auto problem = make_problem(
      builtin_model("llama-3-70b"), builtin_cluster("48xa100-80g"), 4096, 1024, Precision::kBf16);
  EXPECT_EQ(broken(problem, {.dp_replicate = 16, .tp = 3}),
            Messages{"tp=3: must divide the 64 attention heads; use tp=2 or tp=4"});
}

TEST(Validate, KeyValueHeadsAreSharedOrDivided) {
  // 28 heads and 4 key/value heads: tp 7 divides the heads only; 2 key/value heads on tp 4 are
  // replicated.
  const auto qwen = [](const char* cluster) {
    return make_problem(
        builtin_model("qwen2.5-7b"), builtin_cluster(cluster), 4096, 1024, Precision::kBf16);
  };
  EXPECT_EQ(broken(qwen("7xh100"), {.tp = 7}),
            Messages{"tp=7: must divide the 4 key/value heads or be a multiple of them; "
                     "use tp=4 or tp=28"});
  EXPECT_EQ(broken(qwen("28xh100"), {.tp = 28}), Messages{});
}

TEST(Validate, ProductMustBeTheWorldSize) {
  EXPECT_EQ(broken({.dp_replicate = 2, .tp = 8, .pp = 2}),
            Messages{"dp_replicate=2: pp(2) * dp_replicate(2) * dp_shard(1) * cp(1) * tp(8) = 32 "
                     "must be the 64 devices of the cluster; use dp_replicate=4"});
  EXPECT_EQ(broken({.tp = 8, .pp = 16}),
            Messages{"dp_replicate=1: pp(16) * dp_replicate(1) * dp_shard(1) * cp(1) * tp(8) = 128 "
                     "must be the 64 devices of the cluster; lower the other degrees until their "
                     "product (128) divides 64"});
}

TEST(Validate, HugeDegreesDoNotOverflow) {
  const int huge = 1'000'000;
  const Messages m = broken({.dp_replicate = huge,
                             .dp_shard = huge,
                             .tp = huge,
                             .cp = huge,
                             .pp = huge,
                             .zero_stage = 1});
  ASSERT_FALSE(m.empty());
  EXPECT_THAT(m.front(), ::testing::HasSubstr("must be the 64 devices"));
}

TEST(Validate, DegreesMustBePositive) {
  EXPECT_EQ(broken({.dp_replicate = 0, .pp = -1, .micro_batch = 0}),
            (Messages{"dp_replicate=0: must be at least 1; ",
                      "pp=-1: must be at least 1; ",
                      "micro_batch=0: must be at least 1; "}));
}

TEST(Validate, ContextParallelismDealsTheSequence) {
  EXPECT_EQ(broken({.dp_replicate = 32, .cp = 2}), Messages{});
  EXPECT_EQ(broken(llama_70b(4098), {.dp_replicate = 32, .cp = 2}),
            Messages{"cp=2: ring attention deals 2 cp pieces of equal length: 4 must divide the "
                     "sequence of 4098 tokens; use cp=1 or cp=3"});
  EXPECT_EQ(broken({.dp_replicate = 32, .cp = 2, .flash_attention = false}),
            Messages{"flash_attention=off: context parallelism needs fused attention; use cp=1"});
  // 64 heads on tp 8 leave 8, and one key/value head, which all ranks of cp then hold.
  EXPECT_EQ(broken({.tp = 8, .cp = 8, .cp_kind = CpKind::kUlysses}), Messages{});
  EXPECT_EQ(broken({.tp = 4, .cp = 16, .cp_kind = CpKind::kUlysses}), Messages{});
  EXPECT_EQ(broken({.tp = 2, .cp = 32, .cp_kind = CpKind::kUlysses}), Messages{});
  EXPECT_EQ(broken({.tp = 8, .cp = 8, .cp_kind = CpKind::kUlysses, .pp = 1}), Messages{});
  const auto small =
      make_problem(testing::small_model(), builtin_cluster("8xh100"), 16, 8, Precision::kBf16);
  EXPECT_EQ(broken(small, {.tp = 4, .cp = 2, .cp_kind = CpKind::kUlysses}), Messages{});
  EXPECT_EQ(broken(small, {.tp = 2, .cp = 4, .cp_kind = CpKind::kUlysses, .pp = 1}), Messages{});
}

std::shared_ptr<const Problem> mixtral() {
  return make_problem(
      builtin_model("mixtral-8x7b"), builtin_cluster("64xh100"), 4096, 1024, Precision::kBf16);
}

TEST(Validate, ExpertsAreSpreadOverRanksWithDifferentTokens) {
  EXPECT_EQ(broken({.dp_replicate = 64, .ep = 2}),
            Messages{"ep=2: this model has no experts to spread; use ep=1"});
  EXPECT_EQ(broken(mixtral(), {.dp_shard = 16, .tp = 4, .ep = 8, .zero_stage = 1}), Messages{});
  // Wider than one ZeRO group: over dp_replicate too.
  EXPECT_EQ(
      broken(mixtral(), {.dp_replicate = 4, .dp_shard = 4, .tp = 4, .ep = 8, .zero_stage = 1}),
      Messages{});
  EXPECT_EQ(broken(mixtral(), {.dp_shard = 16, .tp = 4, .ep = 16, .zero_stage = 1}),
            Messages{"ep=16: must divide the 8 experts and the 16 ranks with different tokens; "
                     "use ep=8"});
  EXPECT_EQ(broken(mixtral(), {.dp_shard = 2, .tp = 4, .pp = 8, .ep = 8, .zero_stage = 1}),
            Messages{"ep=8: must divide the 8 experts and the 2 ranks with different tokens; "
                     "use ep=2"});
  // Whole experts run over the tp ranks as well, and need tokens of their own there.
  const Layout whole{
      .dp_shard = 2, .tp = 4, .sp = true, .pp = 8, .ep = 8, .expert_tp = false, .zero_stage = 1};
  EXPECT_EQ(broken(mixtral(), whole), Messages{});
  Layout l = whole;
  l.sp = false;
  EXPECT_THAT(broken(mixtral(), l).front(), ::testing::HasSubstr("need sequence parallelism"));
  l = whole;
  l.ep = 2;
  EXPECT_EQ(broken(mixtral(), l),
            Messages{"ep=2: must divide the 8 experts and the 8 ranks with different tokens, in "
                     "multiples of tp (4); use ep=4"});
}

TEST(Validate, OffloadNeedsATierAndRecomputeLayersARecompute) {
  EXPECT_EQ(broken({.dp_replicate = 64,
                    .offload = {.optimizer = MemoryTier::kHost, .activations = MemoryTier::kNvme}}),
            Messages{});
  EXPECT_EQ(broken({.dp_replicate = 64, .offload = {.parameters = MemoryTier::kHost}}),
            Messages{"offload_parameters=host: fetches the parameters layer by layer, as ZeRO-3 "
                     "does; use zero_stage=3, or offload_parameters=device"});
  const auto v100 = make_problem(
      builtin_model("llama-2-7b"), builtin_cluster("8xv100"), 4096, 64, Precision::kBf16);
  EXPECT_EQ(broken(v100, {.dp_replicate = 8, .offload = {.optimizer = MemoryTier::kNvme}}),
            Messages{"offload_optimizer=nvme: the cluster's document gives nvme no bandwidth; "
                     "give nvme_GBps"});
  EXPECT_EQ(broken({.dp_replicate = 64, .recompute_layers = 4}),
            Messages{"recompute_layers=4: has nothing to repeat with recompute=none; "
                     "use recompute=full, or recompute_layers=0"});
  EXPECT_EQ(broken({.dp_shard = 64, .zero_stage = 3, .persistence_threshold = -1}),
            Messages{"persistence_threshold=-1: must be a number of elements, or 0 (all tensors "
                     "are sharded); use persistence_threshold=0"});
  EXPECT_EQ(broken({.dp_shard = 64, .zero_stage = 3, .reduce_bucket = -5}),
            Messages{"reduce_bucket=-5: must be a number of elements, or 0 (each block's gradients "
                     "leave by themselves); use reduce_bucket=0"});
}

TEST(Validate, Fp8NeedsUnitsThatHaveIt) {
  EXPECT_EQ(broken({.dp_replicate = 64, .precision = Precision::kFp8}),
            Messages{"precision=fp8: the matmul units of a100-80g have no FP8; "
                     "use --precision bf16"});
}

TEST(Validate, ZeroStageAndShardGoTogether) {
  EXPECT_EQ(broken({.dp_shard = 64}),
            Messages{"dp_shard=64: must be 1 with zero_stage=0, which shards nothing; "
                     "use dp_replicate=64 and dp_shard=1, or zero_stage=1"});
  EXPECT_EQ(broken({.dp_replicate = 64, .zero_stage = 1}),
            Messages{"zero_stage=1: needs dp_shard > 1 to shard over; use zero_stage=0"});
  EXPECT_EQ(broken({.dp_shard = 64, .zero_stage = 3}), Messages{});
  EXPECT_EQ(broken({.dp_shard = 64, .zero_stage = 4}),
            Messages{"zero_stage=4: must be from 0 to 3; use zero_stage=0 to zero_stage=3"});
  // Ranks of a sequence share the states too.
  EXPECT_EQ(broken({.tp = 8, .cp = 8, .zero_stage = 3}), Messages{});
  EXPECT_EQ(
      broken({.dp_shard = 32, .pp = 2, .zero_stage = 2, .schedule = ScheduleKind::kZbH1}),
      Messages{"zero_stage=2: schedule zb_h1 puts weight gradients off, and ZeRO-2 would keep "
               "them whole until then; use zero_stage=1, or schedule=1f1b"});
}

TEST(Validate, SequenceParallelism) {
  EXPECT_EQ(broken({.dp_replicate = 64, .sp = true}),
            Messages{"sp=true: sequence parallelism needs tp > 1; use sp=off"});
  EXPECT_EQ(broken(llama_70b(4092), {.dp_replicate = 8, .tp = 8, .sp = true}),
            Messages{"sp=true: the 4092 tokens of a micro-batch must divide by tp (8); "
                     "use sp=off, or a sequence length of 4096"});
  EXPECT_EQ(broken(llama_70b(4092), {.dp_replicate = 8, .tp = 8, .sp = true, .micro_batch = 2}),
            Messages{});
}

TEST(Validate, StagesCoverTheLayersOnce) {
  // Megatron-LM issue 468: a split that does not cover is refused, with the balanced one.
  const Layout pp2{.dp_replicate = 4, .tp = 8, .pp = 2};
  const auto with = [&](std::vector<int> stages) {
    Layout l = pp2;
    l.stages = std::move(stages);
    return broken(l);
  };
  EXPECT_EQ(with({40, 30}),
            Messages{"stages=40,30: must cover the 80 layers exactly once, but sum "
                     "to 70; use --stages 40,40"});
  EXPECT_EQ(with({80, 0}),
            Messages{"stages=80,0: every stage needs at least one layer; use --stages 40,40"});
  EXPECT_EQ(with({20, 20, 40}),
            Messages{"stages=20,20,40: must have one entry per stage: 3 given, "
                     "pp is 2; use --stages 40,40"});
  EXPECT_EQ(with({30, 50}), Messages{});
  const auto problem =
      make_problem(testing::small_model(), builtin_cluster("8xh100"), 16, 8, Precision::kBf16);
  EXPECT_EQ(broken(problem, {.pp = 8}),
            Messages{"pp=8: exceeds the 4 layers of the model; use pp=4"});
}

TEST(Validate, BatchMustDivide) {
  EXPECT_EQ(broken(llama_70b(4096, 96), {.dp_replicate = 64}),
            Messages{"dp_replicate=64: data parallelism must divide the global batch of 96 "
                     "sequences; use dp=48"});
  EXPECT_EQ(broken({.dp_replicate = 64, .micro_batch = 3}),
            Messages{"micro_batch=3: must divide the 16 sequences of each data-parallel rank; "
                     "use micro_batch=2 or micro_batch=4"});
  EXPECT_EQ(broken({.dp_replicate = 64, .micro_batch = 1'000'000'000}),
            Messages{"micro_batch=1000000000: must divide the 16 sequences of each data-parallel "
                     "rank; use micro_batch=16"});
}

TEST(Validate, SequenceWithinTheModel) {
  EXPECT_EQ(broken(llama_70b(16384), {.dp_replicate = 8, .tp = 8}),
            Messages{"seq_len=16384: exceeds the model's max_position_embeddings (8192); "
                     "use --seq-len 8192"});
  // Beyond a sliding window is legal; the worker's attention has none.
  const auto mistral = make_problem(
      builtin_model("mistral-7b"), builtin_cluster("8xh100"), 8192, 8, Precision::kBf16);
  EXPECT_EQ(broken(mistral, {.tp = 8}), Messages{});
  const auto local = make_problem(
      builtin_model("mistral-7b"), builtin_cluster("2xlocal"), 8192, 8, Precision::kFp32);
  const Plan plan = testing::make_plan(local, {.tp = 2, .precision = Precision::kFp32});
  EXPECT_THAT(to_string(*executor_refuses(plan)), ::testing::HasSubstr("sliding window (4096)"));
}

TEST(Validate, CpuRanksComputeInFp32) {
  const auto problem =
      make_problem(testing::small_model(), builtin_cluster("2xlocal"), 16, 8, Precision::kBf16);
  EXPECT_THAT(broken(problem, {.tp = 2}).front(),
              ::testing::StartsWith("precision=bf16: CPU ranks compute in FP32"));
  EXPECT_EQ(broken(problem, {.tp = 2, .precision = Precision::kFp32}), Messages{});
}

TEST(Validate, AllViolationsAreReturnedTogether) {
  const ValidationOutcome outcome = validate(
      llama_70b(), {.tp = 3, .pp = 2, .micro_batch = 3, .zero_stage = 1, .stages = {40, 30}});
  std::vector<std::string> fields;
  for (const Error& e : outcome.violations) fields.push_back(e.field);
  EXPECT_EQ(fields, (Messages{"dp_replicate", "zero_stage", "tp", "stages", "micro_batch"}));
}

/// 80 layers on 64 devices: tp 4, pp 16, one data-parallel rank and 1024 micro-batches.
Layout pp16(ScheduleKind schedule, int virtual_stages) {
  return {.tp = 4, .pp = 16, .virtual_stages = virtual_stages, .schedule = schedule};
}

TEST(Validate, EveryScheduleHasALegalLayout) {
  for (int k = 0; k < kNumScheduleKinds; ++k) {
    const auto kind = static_cast<ScheduleKind>(k);
    const int v = kind == ScheduleKind::kInterleaved ? 5 : kind == ScheduleKind::kZbV ? 2 : 1;
    EXPECT_EQ(broken(pp16(kind, v)), Messages{}) << to_string(kind);
  }
}

TEST(Validate, VirtualStagesAndScheduleGoTogether) {
  EXPECT_EQ(broken(pp16(ScheduleKind::k1f1b, 2)),
            Messages{"virtual_stages=2: schedule 1f1b has one part of the model per rank; "
                     "use schedule=interleaved, or virtual_stages=1"});
  EXPECT_EQ(broken(pp16(ScheduleKind::kInterleaved, 1)),
            Messages{"virtual_stages=1: schedule interleaved needs several parts of the model per "
                     "rank; use virtual_stages=2, or schedule=1f1b"});
  EXPECT_EQ(broken(pp16(ScheduleKind::kZbV, 1)),
            Messages{"virtual_stages=1: schedule zb_v has two parts of the model per rank; "
                     "use virtual_stages=2"});
  EXPECT_EQ(broken({.dp_replicate = 16, .tp = 4, .schedule = ScheduleKind::kZbH1}),
            Messages{"schedule=zb_h1: needs pp > 1; use schedule=1f1b, or pp=2"});
}

TEST(Validate, DualPipeNeedsAnEvenPipeline) {
  const auto problem = make_problem(
      builtin_model("llama-3-70b"), builtin_cluster("24xa100-80g"), 4096, 1024, Precision::kBf16);
  EXPECT_EQ(broken(problem, {.tp = 8, .pp = 3, .schedule = ScheduleKind::kDualPipe}),
            Messages{"pp=3: schedule dualpipe feeds the pipeline from both ends and needs an even "
                     "pp; use pp=2 or pp=4"});
}

// NeMo issue 14288: fewer micro-batches than stages with virtual stages; named up front.
TEST(Validate, TooFewMicroBatchesForTheSchedule) {
  Layout l = pp16(ScheduleKind::kInterleaved, 5);
  l.micro_batch = 4;
  EXPECT_EQ(
      broken(llama_70b(4096, 32), l),
      Messages{"micro_batch=4: makes 8 micro-batches, but schedule interleaved on pp=16 needs "
               "at least 16; use micro_batch=2, --global-batch 262144, or schedule=1f1b"});
  EXPECT_EQ(broken(llama_70b(4096, 30), pp16(ScheduleKind::kZbV, 2)),
            Messages{"micro_batch=1: makes 30 micro-batches, but schedule zb_v on pp=16 needs at "
                     "least 31; use --global-batch 126976, or schedule=1f1b"});
  EXPECT_EQ(
      broken(llama_70b(4096, 33), pp16(ScheduleKind::kDualPipe, 1)),
      Messages{"micro_batch=1: makes 33 micro-batches, but schedule dualpipe on pp=16 needs an "
               "even number of at least 32; use --global-batch 139264, or schedule=1f1b"});
  // A remainder is legal: the micro-batches go in groups of at least pp.
  EXPECT_EQ(broken(llama_70b(4096, 33), pp16(ScheduleKind::kInterleaved, 5)), Messages{});
}

// Megatron-LM issue 468: 80 layers on pp 16 with 2 layers per virtual stage floor to 64 layers.
TEST(Validate, VirtualStagesNeverDropLayers) {
  Layout l = pp16(ScheduleKind::kInterleaved, 2);
  l.stages.assign(32, 2);
  const Messages m = broken(l);
  ASSERT_EQ(m.size(), 1u);
  EXPECT_THAT(m[0], ::testing::HasSubstr("must cover the 80 layers exactly once, but sum to 64"));
  EXPECT_THAT(
      m[0],
      ::testing::HasSubstr("use --stages 2,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,2,2,2,2,2,2,2,2,2,"
                           "2,2,2,2,2,2, or for equal parts virtual_stages=5"));
  l.stages.pop_back();
  EXPECT_THAT(broken(l).front(),
              ::testing::HasSubstr("must have one entry per part: 31 given, pp(16) * "
                                   "virtual_stages(2) is 32"));
  EXPECT_EQ(broken(pp16(ScheduleKind::kInterleaved, 6)),
            Messages{"virtual_stages=6: pp(16) * virtual_stages(6) = 96 parts exceed the 80 layers "
                     "of the model; use virtual_stages=5"});
  // Without a split of its own, 80 layers over 32 parts are uneven and whole.
  const auto outcome = validate(llama_70b(), pp16(ScheduleKind::kInterleaved, 2));
  ASSERT_TRUE(outcome.plan.has_value());
  EXPECT_EQ(std::accumulate(
                outcome.plan->layout().stages.begin(), outcome.plan->layout().stages.end(), 0),
            80);
}

TEST(ExecutorSupport, TheWorkerRunsEveryScheduleOnCpuRanksAlone) {
  for (Layout l : testing::all_layouts()) {
    EXPECT_FALSE(executor_refuses(testing::ideal_plan(testing::small_model(), l)).has_value())
        << summary(l);
  }
  const auto outcome = validate(llama_70b(), pp16(ScheduleKind::kZbV, 2));
  ASSERT_TRUE(outcome.plan.has_value());
  const auto refusal = executor_refuses(*outcome.plan);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(to_string(*refusal),
            "/cluster: cluster = 64xa100-80g: the worker runs on CPU ranks only; "
            "plan with --cluster 64xlocal");
}

TEST(ExecutorSupport, AModelThatTheWorkerCannotRunIsNamedWithItsPart) {
  for (const auto& [name, part] : {std::pair{"gpt2", "attn_pdrop"},
                                   {"gemma-2-2b", "a GELU gate"},
                                   {"mixtral-8x7b", "experts"},
                                   {"deepseek-v3", "experts"}}) {
    ModelSpec m = testing::builtin_model(name);
    const auto refusal = executor_refuses(testing::ideal_plan(m, {.tp = 1}));
    ASSERT_TRUE(refusal.has_value()) << name;
    EXPECT_THAT(refusal->rule, ::testing::HasSubstr(part)) << name;
  }
}

}  // namespace
}  // namespace meshwright
