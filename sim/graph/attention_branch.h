// The attention branch of a decoder layer: norm, projections, rotary, attention, output projection.
//
// Grouped-query attention (with the fused kernel, or with the score matrix in memory), and
// multi-head latent attention.
#pragma once

#include "sim/graph/branch.h"

namespace meshwright {

class AttentionBranch {
 public:
  explicit AttentionBranch(BlockBuilder& b) : b_(b) {}

  /// Returns the layer's hidden state after the branch [TL, D].
  BufferId forward(BufferId x);
  /// Adds the branch's gradient to `grad` [TL, D].
  void backward(BufferId grad);

 private:
  void project_grouped(BufferId normed);
  void project_latent(BufferId normed);
  void attend();
  /// What attention reads: [queries and keys with their values], or latent queries, keys, values.
  [[nodiscard]] std::vector<BufferId> attention_inputs() const;
  /// Keys and values that context parallelism brings from other ranks, or nothing (-1).
  BufferId ring_kv(const char* name, int pieces);
  /// Sequence shards to head shards, and back.
  [[nodiscard]] bool by_heads() const { return b_.shapes().cp > 1 && b_.shapes().ulysses; }
  BufferId to_heads(BufferId x);
  void from_heads(BufferId x, BufferId like);
  void attend_backward(BufferId dout);
  void project_grouped_backward();
  void project_latent_backward();

  BlockBuilder& b_;
  NormState norm_;
  BranchEnd end_;
  BufferId qkv_ = -1;  ///< [T, (N + 2K) H] grouped; latent: the queries [T, N H].
  BufferId qk_ = -1;   ///< Normed query and key heads; -1 without.
  BufferId head_rstd_ = -1;
  BufferId latent_ = -1;  ///< [T, R_q + R_kv + H_rope].
  NormState q_norm_, kv_norm_;
  BufferId kv_ = -1;    ///< Latent: [T, N (H_nope + H_v)].
  BufferId keys_ = -1;  ///< Latent: [T, N H].
  BufferId probs_ = -1, dropped_ = -1, attention_mask_ = -1;
  BufferId out_ = -1, lse_ = -1;
  std::vector<BufferId> in_;  ///< What attention read, as head shards under Ulysses.
  BufferId attended_ = -1;    ///< What it wrote; `out_` but for Ulysses.
  BufferId dq_ = -1, dk_ = -1, dv_ = -1;
  BufferId dnorm_ = -1;
};

}  // namespace meshwright
