// SPDX-License-Identifier: Apache-2.0
// Whole steps on one and several ranks: the same loss and gradient norm in every layout, equal bits
// where the rules promise them, peak memory to the byte, and faults that show.
#include "exec/runtime/trainer.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <vector>

#include "exec/runtime/counting_allocator.h"
#include "exec/runtime/weight_update.h"
#include "sim/memory/replay.h"
#include "tests/unit/exec/spawn_ranks.h"
#include "tests/unit/exec/tiny_plan.h"

namespace meshwright {
namespace {

constexpr int kSteps = 3;

struct Outcome {
  std::vector<double> loss, grad_norm;
  std::vector<float> weights;  ///< That this rank keeps, bucket after bucket; whole ones unpadded.
};

Outcome train(const Plan& plan, CommWorld& world, Fault fault = Fault::kNone, int steps = kSteps) {
  at::set_num_threads(1);
  const auto source = random_source(plan.model().vocab_size, plan.workload().seq_len, 5);
  Trainer trainer(plan, world, *source, {.fault = fault});
  Outcome run;
  for (int step = 0; step < steps; ++step) {
    const StepResult r = trainer.step(step);
    run.loss.push_back(r.loss);
    run.grad_norm.push_back(r.grad_norm);
  }
  for (size_t i = 0; i < trainer.placement().buckets.size(); ++i) {
    const auto w = trainer.weights(static_cast<int>(i));
    const auto numel = static_cast<size_t>(trainer.placement().buckets[i].numel);
    run.weights.insert(run.weights.end(), w.begin(), w.begin() + std::min(numel, w.size()));
  }
  return run;
}

Outcome train_on_one_rank(TinyPlan tiny, int steps = kSteps) {
  tiny.layout = {.recompute = tiny.layout.recompute, .precision = Precision::kFp32};
  const auto world = CommWorld::connect("file:unused", 0, 1, std::chrono::seconds(1));
  return train(make_plan(tiny), *world, Fault::kNone, steps);
}

double relative_error(double got, double want) { return std::abs(got - want) / std::abs(want); }

double largest_relative_error(const std::vector<double>& got, const std::vector<double>& want) {
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, relative_error(got[i], want[i]));
  return worst;
}

TEST(Trainer, LossFallsOnARepeatingSequence) {
  spawn_one([] {
    std::vector<uint32_t> tokens(8 * 16 + 1);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<uint32_t>(i % 5);
    const std::string path = ::testing::TempDir() + "meshwright_trainer_test.tokens";
    ASSERT_TRUE(write_token_file(path, tokens, 61, std::nullopt));
    auto file = TokenFile::open(path);
    ASSERT_TRUE(file);
    std::remove(path.c_str());
    at::set_num_threads(1);
    const Plan plan = make_plan({});
    const auto source = token_file_source(std::move(*file), plan.workload().seq_len);
    const auto world = CommWorld::connect("file:unused", 0, 1, std::chrono::seconds(1));
    Trainer trainer(plan, *world, *source);
    const double first = trainer.step(0).loss;
    double last = first;
    for (int64_t step = 1; step < 20; ++step) last = trainer.step(step).loss;
    EXPECT_NEAR(first, std::log(61.0), 0.2);
    EXPECT_LT(last, 0.5 * first);
  });
}

TEST(Trainer, RecomputeChangesNoBit) {
  spawn_one([] {
    TinyPlan tiny;
    const Outcome without = train_on_one_rank(tiny);
    tiny.layout.recompute = Recompute::kFull;
    const Outcome with = train_on_one_rank(tiny);
    EXPECT_EQ(with.loss, without.loss);
    EXPECT_EQ(with.weights, without.weights);
  });
}

TEST(Trainer, ZeroStagesGiveEqualBits) {
  spawn_ranks(2, [](CommWorld& world) {
    TinyPlan tiny{.tied = true};
    tiny.layout.dp_replicate = 2;
    const Outcome zero0 = train(make_plan(tiny), world);
    tiny.layout.dp_replicate = 1;
    tiny.layout.dp_shard = 2;
    tiny.layout.zero_stage = 1;
    const Outcome zero1 = train(make_plan(tiny), world);
    EXPECT_EQ(zero1.loss, zero0.loss);
    EXPECT_EQ(zero1.grad_norm, zero0.grad_norm);
    EXPECT_EQ(zero1.weights, zero0.weights);
  });
}

// With one micro-batch nothing is added in another order.
TEST(Trainer, ShardedGradientsAndWeightsOfOneMicroBatchGiveEqualBits) {
  spawn_ranks(2, [](CommWorld& world) {
    TinyPlan tiny{.tied = true};
    tiny.layout.micro_batch = 4;
    tiny.layout.dp_replicate = 2;
    const Outcome zero0 = train(make_plan(tiny), world);
    std::swap(tiny.layout.dp_replicate, tiny.layout.dp_shard);
    for (const int stage : {2, 3}) {
      tiny.layout.zero_stage = stage;
      const Outcome sharded = train(make_plan(tiny), world);
      EXPECT_EQ(sharded.loss, zero0.loss) << stage;
      EXPECT_EQ(sharded.grad_norm, zero0.grad_norm) << stage;
      if (stage == 2) {
        EXPECT_EQ(sharded.weights, zero0.weights);
      }
    }
  });
}

struct Case {
  const char* name;
  TinyPlan tiny;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }  // else gtest prints bytes

std::vector<Case> layouts() {
  const auto with = [](Layout l) {
    l.precision = Precision::kFp32;
    return TinyPlan{.layout = l};
  };
  std::vector<Case> cases{
      {"tp2", with({.tp = 2})},
      {"tp2_sp", with({.tp = 2, .sp = true})},
      {"tp4_shared_kv_heads", with({.tp = 4})},
      {"tp4_sp_shared_kv_heads", with({.tp = 4, .sp = true})},
      {"pp2", with({.pp = 2, .micro_batch = 2})},
      {"pp2_gpipe", with({.pp = 2, .schedule = ScheduleKind::kGpipe})},
      {"pp3_uneven", with({.pp = 3, .stages = {1, 2, 1}})},
      {"dp2", with({.dp_replicate = 2})},
      {"dp4_zero1", with({.dp_shard = 4, .zero_stage = 1})},
      {"dp2x2_zero1", with({.dp_replicate = 2, .dp_shard = 2, .zero_stage = 1})},
      {"tp2_sp_pp2_recompute", with({.tp = 2, .sp = true, .pp = 2, .recompute = Recompute::kFull})},
      {"tp2_sp_dp2_zero1", with({.dp_shard = 2, .tp = 2, .sp = true, .zero_stage = 1})},
      {"pp2_dp2_zero1_tied", with({.dp_shard = 2, .pp = 2, .zero_stage = 1})},
      {"pp2_tp2_tied", with({.tp = 2, .pp = 2})},
      {"interleaved_tied",
       with({.pp = 2, .virtual_stages = 2, .schedule = ScheduleKind::kInterleaved})},
      {"interleaved_dp2_zero1_recompute",
       with({.dp_shard = 2,
             .pp = 2,
             .virtual_stages = 2,
             .zero_stage = 1,
             .recompute = Recompute::kFull,
             .schedule = ScheduleKind::kInterleaved})},
      {"zb_h1_pp4", with({.pp = 4, .schedule = ScheduleKind::kZbH1})},
      {"zb_h1_tp2_sp_recompute",
       with({.tp = 2,
             .sp = true,
             .pp = 2,
             .recompute = Recompute::kFull,
             .schedule = ScheduleKind::kZbH1})},
      {"zb_h2_tp2", with({.tp = 2, .pp = 2, .schedule = ScheduleKind::kZbH2})},
      {"zb_v_tied", with({.pp = 2, .virtual_stages = 2, .schedule = ScheduleKind::kZbV})},
      {"dualpipe", with({.pp = 2, .schedule = ScheduleKind::kDualPipe})},
      {"dualpipe_pp4_recompute_tied",
       with({.pp = 4, .recompute = Recompute::kFull, .schedule = ScheduleKind::kDualPipe})},
      {"dualpipe_dp2_zero1",
       with({.dp_shard = 2, .pp = 2, .zero_stage = 1, .schedule = ScheduleKind::kDualPipe})},
      {"pp2_first_layer_recomputes",
       with({.pp = 2, .recompute = Recompute::kFull, .recompute_layers = 1})},
      {"zb_h1_first_layer_recomputes_tied",
       with({.pp = 2,
             .recompute = Recompute::kFull,
             .recompute_layers = 1,
             .schedule = ScheduleKind::kZbH1})},
      {"dp2_zero3_first_layers_recompute",
       with(
           {.dp_shard = 2, .zero_stage = 3, .recompute = Recompute::kFull, .recompute_layers = 3})},
      {"dp2_zero2", with({.dp_shard = 2, .zero_stage = 2})},
      {"dp4_zero2_tied", with({.dp_shard = 4, .zero_stage = 2})},
      {"dp2x2_zero2", with({.dp_replicate = 2, .dp_shard = 2, .zero_stage = 2})},
      {"tp2_sp_dp2_zero2", with({.dp_shard = 2, .tp = 2, .sp = true, .zero_stage = 2})},
      {"pp2_dp2_zero2_tied", with({.dp_shard = 2, .pp = 2, .zero_stage = 2})},
      {"interleaved_dp2_zero2_recompute",
       with({.dp_shard = 2,
             .pp = 2,
             .virtual_stages = 2,
             .zero_stage = 2,
             .recompute = Recompute::kFull,
             .schedule = ScheduleKind::kInterleaved})},
      {"dp2_zero3", with({.dp_shard = 2, .zero_stage = 3})},
      {"dp4_zero3_tied", with({.dp_shard = 4, .zero_stage = 3})},
      {"dp2_zero3_prefetch0_recompute",
       with({.dp_shard = 2, .zero_stage = 3, .prefetch = 0, .recompute = Recompute::kFull})},
      {"dp2_zero3_prefetch3_tied", with({.dp_shard = 2, .zero_stage = 3, .prefetch = 3})},
      {"dp2_zero3_keep", with({.dp_shard = 2, .zero_stage = 3, .reshard = false})},
      {"dp2_zero3_persistent",
       with({.dp_shard = 2, .zero_stage = 3, .persistence_threshold = 100})},
      {"dp2x2_zero3_tied", with({.dp_replicate = 2, .dp_shard = 2, .zero_stage = 3})},
      {"tp2_sp_dp2_zero3", with({.dp_shard = 2, .tp = 2, .sp = true, .zero_stage = 3})},
      {"pp2_dp2_zero3_tied", with({.dp_shard = 2, .pp = 2, .zero_stage = 3})},
      {"gpipe_dp2_zero3",
       with({.dp_shard = 2, .pp = 2, .zero_stage = 3, .schedule = ScheduleKind::kGpipe})},
      {"interleaved_dp2_zero3_recompute",
       with({.dp_shard = 2,
             .pp = 2,
             .virtual_stages = 2,
             .zero_stage = 3,
             .recompute = Recompute::kFull,
             .schedule = ScheduleKind::kInterleaved})},
      {"normed_tp4_sp_shared_kv_heads", with({.tp = 4, .sp = true})},
      {"normed_zb_h1_recompute",
       with({.pp = 2, .recompute = Recompute::kFull, .schedule = ScheduleKind::kZbH1})},
      {"gpt_tp2_sp_recompute", with({.tp = 2, .sp = true, .recompute = Recompute::kFull})},
      {"gpt_pp2_dp2_zero1_tied", with({.dp_shard = 2, .pp = 2, .zero_stage = 1})},
      {"gpt_zb_h1_tp2", with({.tp = 2, .pp = 2, .schedule = ScheduleKind::kZbH1})},
      {"gpt_dp2_zero3_tied", with({.dp_shard = 2, .zero_stage = 3})},
      {"zb_v_dp2_tied",
       with({.dp_replicate = 2, .pp = 2, .virtual_stages = 2, .schedule = ScheduleKind::kZbV})},
  };
  for (Case& c : cases) {
    c.tiny.tied = std::string_view(c.name).ends_with("tied");
    c.tiny.qk_norm = std::string_view(c.name).starts_with("normed");
    c.tiny.qkv_bias = c.tiny.layout.tp == 4 && !c.tiny.qk_norm;
    if (std::string_view(c.name).starts_with("gpt")) {
      c.tiny.num_kv_heads = c.tiny.num_heads;
      c.tiny.gpt = FfnKind::kGelu;
      c.tiny.dropout = 0.1;
    }
  }
  return cases;
}

class Layouts : public ::testing::TestWithParam<Case> {};

TEST_P(Layouts, TrainAsOneRankAndInThePredictedMemory) {
  const TinyPlan tiny = GetParam().tiny;
  spawn_ranks(static_cast<int>(tiny.layout.world_size()), [&tiny](CommWorld& world) {
    install_counting_allocator();
    const Outcome reference = train_on_one_rank(tiny);
    const int64_t before = allocator_stats().live_bytes;
    reset_peak();
    const Plan plan = make_plan(tiny);
    const Outcome run = train(plan, world);
    EXPECT_LT(relative_error(run.loss[0], reference.loss[0]), 1e-6);
    EXPECT_LT(relative_error(run.grad_norm[0], reference.grad_norm[0]), 1e-6);
    // Adam divides a gradient by its own size: where that is near the rounding error, the updates
    // differ by more than rounding. A lost update or gather would show far above this.
    EXPECT_LT(largest_relative_error(run.loss, reference.loss), 1e-5);
    EXPECT_LT(largest_relative_error(run.grad_norm, reference.grad_norm), 1e-4);
    const MemoryProfile predicted = replay_memory(plan, build_program(plan), world.rank());
    EXPECT_EQ(allocator_stats().peak_bytes - before, static_cast<int64_t>(predicted.peak.v));
  });
}

INSTANTIATE_TEST_SUITE_P(Axes, Layouts, ::testing::ValuesIn(layouts()), [](const auto& test) {
  return std::string(test.param.name);
});

TEST(Trainer, FaultsShow) {
  spawn_ranks(2, [](CommWorld& world) {
    const TinyPlan base;
    const Outcome reference = train_on_one_rank(base, 1);
    Layout tp;
    tp.tp = 2;
    Layout sp = tp;
    sp.sp = true;
    Layout dp;
    dp.dp_replicate = 2;
    Layout zero = dp;
    std::swap(zero.dp_replicate, zero.dp_shard);
    zero.zero_stage = 1;
    for (Layout l : {tp, sp, dp, zero}) {
      l.precision = Precision::kFp32;
      for (const Fault fault :
           {Fault::kSkippedAllReduce, Fault::kDoubledNormTerm, Fault::kWrongLossScale}) {
        const Outcome run = train(make_plan({.layout = l}), world, fault, 1);
        const double error = std::max(largest_relative_error(run.loss, reference.loss),
                                      largest_relative_error(run.grad_norm, reference.grad_norm));
        if (changes_training(fault, l, false)) {
          EXPECT_GT(error, 1e-5) << summary(l) << " " << to_string(fault);
        } else {
          EXPECT_LT(error, 1e-6) << summary(l) << " " << to_string(fault);
        }
      }
    }
  });
}

TEST(WeightUpdate, WarmsUpAndClips) {
  const OptimizerRecipe recipe{.learning_rate = 0.4, .warmup_steps = 4, .max_grad_norm = 2.0};
  EXPECT_DOUBLE_EQ(learning_rate(recipe, 0), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(recipe, 3), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(recipe, 100), 0.4);
  EXPECT_DOUBLE_EQ(clip_scale(recipe, 1.0), 1.0);
  EXPECT_NEAR(clip_scale(recipe, 8.0), 0.25, 1e-6);
}

}  // namespace
}  // namespace meshwright
