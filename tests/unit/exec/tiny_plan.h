// A small valid Plan for tests, from the few numbers that a test cares about.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "sim/plan/plan.h"

namespace meshwright {

/// Grouped queries, a vocabulary and a feed-forward width that no degree divides.
struct TinyPlan {
  int64_t vocab_size = 61, d_model = 32, d_ff = 45, num_layers = 4, num_heads = 4, num_kv_heads = 2,
          head_dim = 8;
  bool tied = false, qkv_bias = false;
  bool qk_norm = false;  ///< As Qwen3.
  /// LayerNorm, learned positions, biases on all projections and a feed-forward without a gate.
  std::optional<FfnKind> gpt;
  double dropout = 0;
  int64_t seq_len = 16, global_batch = 8;
  double learning_rate = 1e-2;
  Layout layout{.precision = Precision::kFp32};
};

inline Plan make_plan(const TinyPlan& t) {
  auto problem = std::make_shared<Problem>();
  ModelSpec& m = problem->model;
  m.name = "tiny";
  m.vocab_size = t.vocab_size;
  m.d_model = t.d_model;
  m.d_ff = t.d_ff;
  m.num_layers = t.num_layers;
  m.num_heads = t.num_heads;
  m.num_kv_heads = t.num_kv_heads;
  m.head_dim = t.head_dim;
  m.max_seq_len = 4096;
  m.tied_embeddings = t.tied;
  m.qkv_bias = t.qkv_bias;
  m.qk_norm = t.qk_norm;
  m.dropout = t.dropout;
  if (t.gpt) {
    m.norm = NormKind::kLayerNorm;
    m.ffn = *t.gpt;
    m.positions = PositionKind::kLearned;
    m.position_rows = t.seq_len + 2;
    m.max_seq_len = t.seq_len;
    m.linear_bias = true;
  }
  auto cluster = load_cluster(std::to_string(t.layout.world_size()) + "xlocal",
                              MachineFacts{.memory = Bytes{1e10}});
  MW_CHECK(cluster.has_value());
  problem->cluster = *cluster;
  problem->workload = {.name = "tiny",
                       .seq_len = t.seq_len,
                       .global_batch = t.global_batch,
                       .tokens = {},
                       .precision = Precision::kFp32};
  problem->workload.optimizer = {
      .learning_rate = t.learning_rate, .warmup_steps = 2, .weight_decay = 0.1};
  problem->workload.seed = 3;
  const ValidationOutcome outcome = validate(problem, t.layout);
  for (const Error& e : outcome.violations) ADD_FAILURE() << to_string(e);
  MW_CHECK(outcome.plan.has_value());
  return *outcome.plan;
}

}  // namespace meshwright
