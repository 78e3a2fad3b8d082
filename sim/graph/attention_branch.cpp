// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/attention_branch.h"

#include <algorithm>

namespace meshwright {

BufferId AttentionBranch::forward(BufferId x) {
  const ShardShapes& s = b_.shapes();
  const ModelSpec& m = b_.model();
  norm_ = norm_forward(b_, "attn", x, s.TL, ParamSlot::kAttnNorm, ParamSlot::kAttnNormBias);
  const BufferId normed = b_.gathered(norm_.y, b_.whole("attn_norm_whole"));
  m.mla ? project_latent(normed) : project_grouped(normed);
  attend();
  end_ = end_branch(b_,
                    {.name = "attn",
                     .projection = ParamSlot::kAttnOut,
                     .bias = m.linear_bias ? ParamSlot::kAttnOutBias : ParamSlot::kNone,
                     .post_norm = m.post_norms ? ParamSlot::kPostAttnNorm : ParamSlot::kNone},
                    out_,
                    x);
  return end_.output;
}

void AttentionBranch::project_grouped(BufferId normed) {
  const ShardShapes& s = b_.shapes();
  const ModelSpec& m = b_.model();
  qkv_ = b_.act("qkv", s.T, (s.N + 2 * s.K) * s.H);
  b_.linear(normed, qkv_, ParamSlot::kQkv);
  if (m.qkv_bias || m.linear_bias) b_.simple(OpKind::kAddBias, {}, {qkv_}, ParamSlot::kQkvBias);
  if (m.qk_norm) {
    qk_ = b_.act("qk_norm", s.T, (s.N + s.K) * s.H);
    head_rstd_ = b_.vec("qk_rstd", s.T * (s.N + s.K));
    b_.simple(OpKind::kHeadNorm, {qkv_}, {qk_, head_rstd_}, ParamSlot::kQueryNorm);
  }
  if (m.positions == PositionKind::kRotary) b_.simple(OpKind::kRope, {}, {qk_ >= 0 ? qk_ : qkv_});
}

void AttentionBranch::project_latent(BufferId normed) {
  const ShardShapes& s = b_.shapes();
  const MlaSpec& a = *b_.model().mla;
  // The down-projections are replicated over tp; a model without a low-rank query projects it
  // directly.
  const int64_t latent_width = a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim;
  latent_ = b_.act("latent", s.T, latent_width);
  b_.linear(normed, latent_, ParamSlot::kLatentDown);
  qkv_ = b_.act("q", s.T, s.N * s.H);
  if (a.q_lora_rank > 0) {
    q_norm_ = {.x = latent_,
               .y = b_.act("q_latent_norm", s.T, a.q_lora_rank),
               .stats = b_.vec("q_latent_rstd", s.T),
               .weight = ParamSlot::kQueryDownNorm};
    b_.simple(OpKind::kRmsNorm, {latent_}, {q_norm_.y, q_norm_.stats}, q_norm_.weight);
    b_.linear(q_norm_.y, qkv_, ParamSlot::kQueryUp);
  } else {
    b_.linear(normed, qkv_, ParamSlot::kQkv);
  }
  kv_norm_ = {.x = latent_,
              .y = b_.act("kv_latent_norm", s.T, a.kv_lora_rank),
              .stats = b_.vec("kv_latent_rstd", s.T),
              .weight = ParamSlot::kKvDownNorm};
  b_.simple(OpKind::kRmsNorm, {latent_}, {kv_norm_.y, kv_norm_.stats}, kv_norm_.weight);
  kv_ = b_.act("kv", s.T, s.N * (a.qk_nope_head_dim + a.v_head_dim));
  b_.linear(kv_norm_.y, kv_, ParamSlot::kKvUp);
  b_.simple(OpKind::kRope, {}, {qkv_});
  keys_ = b_.act("keys", s.T, s.N * s.H);
  b_.simple(OpKind::kLatentKeys, {kv_, latent_}, {keys_});
}

std::vector<BufferId> AttentionBranch::attention_inputs() const {
  if (b_.model().mla) return {qkv_, keys_, kv_};
  if (qk_ >= 0) return {qk_, qkv_};
  return {qkv_};
}

BufferId AttentionBranch::ring_kv(const char* name, int pieces) {
  const ShardShapes& s = b_.shapes();
  if (s.cp == 1 || s.ulysses) return -1;
  const int64_t width = b_.model().mla ? s.N * (s.H + b_.model().mla->v_head_dim) : 2 * s.K * s.H;
  const BufferId pieces_at_hand = b_.act(name, pieces * s.T, width);
  // Each of the other ranks' pieces passes by once; backward's carry their gradients along.
  const double passes = (s.cp - 1) * pieces / 2.0;
  const auto piece = static_cast<double>(size_of(s.act) * s.T * width);
  b_.collective(
      OpKind::kRingKv, attention_inputs(), {pieces_at_hand}, Bytes{passes * piece}, OpGroup::kCp);
  return pieces_at_hand;
}

BufferId AttentionBranch::to_heads(BufferId x) {
  const ShardShapes& s = b_.shapes();
  const BufferSpec spec = b_.block().buffers[static_cast<size_t>(x)];  // a copy: buffers grow
  // Key and value heads that are fewer than the ranks go to several of them.
  const int64_t kv_copies = b_.model().mla ? 1 : std::max<int64_t>(1, s.cp / s.K);
  int64_t cols = spec.shape[1];
  if (kv_copies > 1 && x == qkv_) cols += 2 * s.K * s.H * (kv_copies - 1);
  const BufferId heads = b_.act(spec.name + "_heads", s.T * s.cp, cols / s.cp);
  b_.collective(OpKind::kAllToAll, {x}, {heads}, b_.size(heads), OpGroup::kCp);
  return heads;
}

void AttentionBranch::from_heads(BufferId x, BufferId like) {
  b_.collective(OpKind::kAllToAll, {x}, {like}, b_.size(x), OpGroup::kCp);
}

void AttentionBranch::attend() {
  const ShardShapes& s = b_.shapes();
  const ModelSpec& m = b_.model();
  const int64_t value_width = m.mla ? m.mla->v_head_dim : s.H;
  out_ = attended_ = b_.act("attention", s.T, s.N * value_width);
  in_ = attention_inputs();
  if (s.flash) {
    lse_ = b_.vec("lse", s.T * s.N);
    if (by_heads()) {
      for (BufferId& x : in_) x = to_heads(x);
      attended_ = b_.act("attention_heads", s.T * s.cp, s.N * value_width / s.cp);
    }
    std::vector<BufferId> read = in_;
    if (const BufferId ring = ring_kv("ring_kv", 2); ring >= 0) read.push_back(ring);
    b_.attention(std::move(read), attended_, lse_);
    if (by_heads()) from_heads(attended_, out_);
    return;
  }
  probs_ = b_.act("probs", s.T * s.N, s.S);
  b_.begin_selective();
  b_.score_matmul(OpKind::kScores, in_, {probs_}, 1);
  if (m.attention_softcap > 0) b_.simple(OpKind::kSoftcap, {}, {probs_});
  b_.simple(OpKind::kSoftmax, {}, {probs_});
  dropped_ = probs_;
  if (m.attention_dropout > 0) {
    dropped_ = b_.act("probs_dropped", s.T * s.N, s.S);
    attention_mask_ = b_.buffer("probs_mask", {s.T * s.N, s.S}, DType::kUInt8);
    b_.simple(OpKind::kDropout, {probs_}, {dropped_, attention_mask_});
  }
  b_.end_selective();
  b_.score_matmul(OpKind::kWeightedValues, {dropped_, m.mla ? kv_ : qkv_}, {out_}, 1);
}

void AttentionBranch::backward(BufferId grad) {
  const ShardShapes& s = b_.shapes();
  const BufferId g =
      b_.gathered(enter_branch_backward(b_, "attn", end_, grad), b_.whole("grad_whole_attn"));
  const BufferId datt =
      b_.act("dattention", s.T, s.N * (b_.model().mla ? b_.model().mla->v_head_dim : s.H));
  dnorm_ = b_.act("dattn_norm", s.T, s.D);
  b_.linear_backward_input(g, datt, ParamSlot::kAttnOut);
  b_.linear_backward_weight(g, end_.input, ParamSlot::kAttnOut);
  attend_backward(datt);
  b_.model().mla ? project_latent_backward() : project_grouped_backward();
  norm_backward(b_, norm_, b_.sum_partial(dnorm_, b_.shard("dattn_norm_shard")), grad);
}

void AttentionBranch::attend_backward(BufferId dout) {
  const ShardShapes& s = b_.shapes();
  const ModelSpec& m = b_.model();
  const int64_t kv_heads = m.mla ? s.N : s.K;
  dq_ = b_.act("dq", s.T, s.N * s.H);
  dk_ = b_.act("dk", s.T, kv_heads * s.H);
  dv_ = b_.act("dv", s.T, kv_heads * (m.mla ? m.mla->v_head_dim : s.H));
  if (s.flash) {
    std::vector<BufferId> grads{dq_, dk_, dv_};
    if (by_heads()) {
      dout = to_heads(dout);
      for (BufferId& g : grads) {
        const BufferSpec spec = b_.block().buffers[static_cast<size_t>(g)];
        g = b_.act(spec.name + "_heads", s.T * s.cp, (spec.shape[1] + s.cp - 1) / s.cp);
      }
    }
    std::vector<BufferId> read{dout};
    read.insert(read.end(), in_.begin(), in_.end());
    read.insert(read.end(), {attended_, lse_});
    if (const BufferId ring = ring_kv("ring_kv_again", 4); ring >= 0) read.push_back(ring);
    b_.attention_backward(std::move(read), grads);
    if (by_heads()) {
      from_heads(grads[0], dq_);
      from_heads(grads[1], dk_);
      from_heads(grads[2], dv_);
    }
    return;
  }
  const BufferId values = m.mla ? kv_ : qkv_;
  const BufferId dprobs = b_.act("dprobs", s.T * s.N, s.S);
  b_.score_matmul(OpKind::kWeightedValuesBackward, {dout, dropped_, values}, {dprobs, dv_}, 2);
  if (attention_mask_ >= 0) b_.simple(OpKind::kDropoutBackward, {attention_mask_}, {dprobs});
  b_.simple(OpKind::kSoftmaxBackward, {probs_}, {dprobs});
  std::vector<BufferId> read{dprobs};  // the scores' gradient needs queries and keys alone
  read.insert(read.end(), in_.begin(), in_.end());
  b_.score_matmul(OpKind::kScoresBackward, std::move(read), {dq_, dk_}, 2);
}

void AttentionBranch::project_grouped_backward() {
  const ModelSpec& m = b_.model();
  if (m.positions == PositionKind::kRotary && qk_ < 0) {
    b_.simple(OpKind::kRopeBackward, {dq_, dk_, dv_}, {qkv_});
  } else if (qk_ >= 0) {
    b_.simple(OpKind::kRopeBackward, {}, {dq_, dk_});
    b_.simple(
        OpKind::kHeadNormBackward, {dq_, dk_, dv_, head_rstd_}, {qkv_}, ParamSlot::kQueryNorm);
  } else {
    b_.simple(OpKind::kRopeBackward, {dq_, dk_, dv_}, {qkv_});  // packs only: no rotation
  }
  if (m.qkv_bias || m.linear_bias) {
    b_.simple(OpKind::kBiasBackward, {qkv_}, {}, ParamSlot::kQkvBias);
  }
  b_.linear_backward_input(qkv_, dnorm_, ParamSlot::kQkv);
  b_.linear_backward_weight(
      qkv_, b_.gathered(norm_.y, b_.whole("attn_norm_again")), ParamSlot::kQkv);
}

void AttentionBranch::project_latent_backward() {
  const ShardShapes& s = b_.shapes();
  const MlaSpec& a = *b_.model().mla;
  const BufferId dlatent =
      b_.act("dlatent", s.T, a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim);
  const BufferId dkv = b_.act("dkv", s.T, s.N * (a.qk_nope_head_dim + a.v_head_dim));
  b_.simple(OpKind::kZero, {}, {dlatent});
  b_.simple(OpKind::kLatentKeysBackward, {dk_, dv_}, {dkv, dlatent});
  b_.simple(OpKind::kRopeBackward, {}, {dq_});
  const BufferId dkv_norm = b_.act("dkv_latent_norm", s.T, a.kv_lora_rank);
  b_.linear_backward_input(dkv, dkv_norm, ParamSlot::kKvUp);
  b_.linear_backward_weight(dkv, kv_norm_.y, ParamSlot::kKvUp);
  b_.simple(
      OpKind::kRmsNormBackward, {dkv_norm, latent_, kv_norm_.stats}, {dlatent}, kv_norm_.weight);
  const BufferId normed = b_.gathered(norm_.y, b_.whole("attn_norm_again"));
  if (a.q_lora_rank > 0) {
    const BufferId dq_norm = b_.act("dq_latent_norm", s.T, a.q_lora_rank);
    b_.linear_backward_input(dq_, dq_norm, ParamSlot::kQueryUp);
    b_.linear_backward_weight(dq_, q_norm_.y, ParamSlot::kQueryUp);
    b_.simple(
        OpKind::kRmsNormBackward, {dq_norm, latent_, q_norm_.stats}, {dlatent}, q_norm_.weight);
    b_.linear_backward_input(dlatent, dnorm_, ParamSlot::kLatentDown);
  } else {
    const BufferId direct = b_.act("dq_direct", s.T, s.D);
    b_.linear_backward_input(dq_, direct, ParamSlot::kQkv);
    b_.linear_backward_weight(dq_, normed, ParamSlot::kQkv);
    b_.linear_backward_input(dlatent, dnorm_, ParamSlot::kLatentDown);
    b_.simple(OpKind::kAdd, {direct}, {dnorm_});
  }
  b_.linear_backward_weight(dlatent, normed, ParamSlot::kLatentDown);
}

}  // namespace meshwright
