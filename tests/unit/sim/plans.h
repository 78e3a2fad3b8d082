// SPDX-License-Identifier: Apache-2.0
// Problems and plans for tests, from the few numbers that a test cares about.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "sim/cost/cost_model.h"
#include "sim/plan/plan.h"

namespace meshwright::testing {

/// What the GPU clusters of the tests are read with: they do not depend on this machine.
inline MachineFacts machine() {
  return {.cores = 2, .memory = Bytes{8e9}, .cpu_model = "a CPU", .id = "0123456789abcdef"};
}

/// A grouped-query model in which no degree divides vocabulary and feed-forward width.
inline ModelSpec small_model() {
  return {.name = "small",
          .vocab_size = 61,
          .d_model = 32,
          .d_ff = 45,
          .num_layers = 4,
          .num_heads = 8,
          .num_kv_heads = 2,
          .head_dim = 8,
          .max_seq_len = 4096};
}

inline ModelSpec builtin_model(const std::string& name) { return load_model(name).value(); }

inline ClusterSpec builtin_cluster(const std::string& name) {
  return load_cluster(name, machine()).value();
}

/// CPU ranks with a core and memory of their own, so that only the calibration prices them.
inline ClusterSpec ideal_cluster(int ranks) {
  ClusterSpec c = builtin_cluster(std::to_string(ranks) + "xlocal");
  c.shared_cores.reset();
  c.device.memory = Bytes{1e15};
  c.device.host_per_micro_batch = Seconds{};
  return c;
}

/// Matmul and attention at 1 GFLOP/s; all else, communication included, costs (next to) nothing.
inline Calibration ideal_calibration() {
  constexpr double kFree = 1e30;
  Calibration c;
  c.id = "ideal";
  for (const OpKind kind :
       {OpKind::kLinear, OpKind::kLinearBackwardInput, OpKind::kLinearBackwardWeight}) {
    c.matmul.push_back({.kind = kind, .m = 1000, .n = 1000, .k = 1000, .seconds = 2.0});
  }
  c.attention.push_back(
      {.seq_len = 16, .head_dim = 8, .forward_flop_per_s = 1e9, .backward_flop_per_s = 1e9});
  c.stream.push_back({.kind = OpKind::kAdd, .overhead_s = 0, .bytes_per_s = kFree});
  for (int op = 0; op < kNumCommOps; ++op) {
    c.collectives.push_back({.op = static_cast<CommOp>(op), .group_size = 2});
  }
  c.adamw_params_per_s = kFree;
  return c;
}

inline CostModel ideal_cost(const ClusterSpec& cluster) {
  return CostModel(cluster, std::make_shared<const Calibration>(ideal_calibration()));
}

inline std::shared_ptr<const Problem> make_problem(const ModelSpec& model,
                                                   const ClusterSpec& cluster,
                                                   int64_t seq_len,
                                                   int64_t global_batch,
                                                   Precision precision) {
  auto p = std::make_shared<Problem>();
  p->model = model;
  p->cluster = cluster;
  p->workload = {.name = "test",
                 .seq_len = seq_len,
                 .global_batch = global_batch,
                 .tokens = {},
                 .precision = precision};
  p->workload.optimizer.learning_rate = 1e-3;
  return p;
}

inline Plan make_plan(const std::shared_ptr<const Problem>& problem, const Layout& layout) {
  const ValidationOutcome outcome = validate(problem, layout);
  for (const Error& e : outcome.violations) ADD_FAILURE() << to_string(e);
  MW_CHECK(outcome.plan.has_value());
  return *outcome.plan;
}

/// `layout` on as many ideal FP32 ranks as it needs.
inline Plan ideal_plan(const ModelSpec& model,
                       Layout layout,
                       int64_t seq_len = 16,
                       int64_t global_batch = 8) {
  layout.precision = Precision::kFp32;
  return make_plan(make_problem(model,
                                ideal_cluster(static_cast<int>(layout.world_size())),
                                seq_len,
                                global_batch,
                                Precision::kFp32),
                   layout);
}

/// Some legal layouts of small_model() on 1 to 8 ranks with a batch of 8: every axis, kv heads <
/// tp, uneven stages.
inline std::vector<Layout> legal_layouts() {
  constexpr auto kFull = Recompute::kFull;
  constexpr auto kGpipe = ScheduleKind::kGpipe;
  return {
      {.micro_batch = 2},
      {.micro_batch = 1, .recompute = kFull},
      {.dp_replicate = 2, .micro_batch = 2},
      {.dp_shard = 4, .micro_batch = 1, .zero_stage = 1},
      {.dp_replicate = 2, .dp_shard = 2, .micro_batch = 1, .zero_stage = 1},
      {.tp = 2, .micro_batch = 2},
      {.tp = 4, .sp = true, .micro_batch = 2},
      {.tp = 8, .sp = true, .micro_batch = 1, .recompute = kFull},
      {.pp = 2, .micro_batch = 1},
      {.pp = 4, .micro_batch = 1},
      {.pp = 4, .micro_batch = 1, .schedule = kGpipe},
      {.pp = 3, .micro_batch = 1, .recompute = kFull, .stages = {1, 2, 1}},
      {.pp = 2, .micro_batch = 2, .schedule = kGpipe, .stages = {3, 1}},
      {.tp = 2, .pp = 2, .micro_batch = 1},
      {.tp = 4, .pp = 2, .micro_batch = 2, .recompute = kFull, .schedule = kGpipe},
      {.dp_replicate = 2, .tp = 2, .sp = true, .pp = 2, .micro_batch = 1},
      {.dp_shard = 2, .tp = 2, .pp = 2, .micro_batch = 1, .zero_stage = 1, .stages = {1, 3}},
  };
}

/// Legal layouts of small_model() with a batch of 8 under the schedules of virtual stages and split
/// backward: ties to every other axis.
inline std::vector<Layout> virtual_layouts() {
  constexpr auto kFull = Recompute::kFull;
  using enum ScheduleKind;
  return {
      {.pp = 2, .virtual_stages = 2, .micro_batch = 1, .schedule = kInterleaved},
      {.pp = 2,
       .virtual_stages = 2,
       .micro_batch = 2,
       .recompute = kFull,
       .schedule = kInterleaved},
      {.dp_shard = 2,
       .tp = 2,
       .pp = 2,
       .virtual_stages = 2,
       .micro_batch = 1,
       .zero_stage = 1,
       .schedule = kInterleaved},
      {.pp = 3, .micro_batch = 1, .schedule = kZbH1, .stages = {1, 2, 1}},
      {.dp_replicate = 2, .pp = 4, .micro_batch = 1, .recompute = kFull, .schedule = kZbH1},
      {.tp = 2, .sp = true, .pp = 4, .micro_batch = 1, .schedule = kZbH2},
      {.tp = 2, .pp = 2, .virtual_stages = 2, .micro_batch = 1, .schedule = kZbV},
      {.dp_replicate = 2, .pp = 2, .virtual_stages = 2, .micro_batch = 1, .schedule = kZbV},
      {.pp = 2, .micro_batch = 1, .schedule = kDualPipe, .stages = {1, 3}},
      {.dp_shard = 2, .pp = 2, .micro_batch = 1, .zero_stage = 1, .schedule = kDualPipe},
      {.pp = 4, .micro_batch = 1, .recompute = kFull, .schedule = kDualPipe},
  };
}

inline std::vector<Layout> all_layouts() {
  std::vector<Layout> out = legal_layouts();
  for (const Layout& l : virtual_layouts()) out.push_back(l);
  return out;
}

/// |a - b| within `relative` of b.
inline ::testing::AssertionResult near_rel(double a, double b, double relative) {
  if (std::abs(a - b) <= relative * std::abs(b)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << a << " is not within " << relative << " of " << b;
}

}  // namespace meshwright::testing
