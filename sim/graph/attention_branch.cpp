// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/attention_branch.h"

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

void AttentionBranch::attend() {
  const ShardShapes& s = b_.shapes();
  const ModelSpec& m = b_.model();
  const int64_t value_width = m.mla ? m.mla->v_head_dim : s.H;
  out_ = b_.act("attention", s.T, s.N * value_width);
  std::vector<BufferId> in = m.mla      ? std::vector{qkv_, keys_, kv_}
                             : qk_ >= 0 ? std::vector{qk_, qkv_}
                                        : std::vector{qkv_};
  if (s.flash) {
    lse_ = b_.vec("lse", s.T * s.N);
    b_.attention(std::move(in), out_, lse_);
    return;
  }
  probs_ = b_.act("probs", s.T * s.N, s.S);
  b_.begin_selective();
  b_.score_matmul(OpKind::kScores, in, {probs_}, 1);
  if (m.attention_softcap > 0) b_.simple(OpKind::kSoftcap, {}, {probs_});
  b_.simple(OpKind::kSoftmax, {}, {probs_});
  dropped_ = probs_;
  if (m.dropout > 0) {
    dropped_ = b_.act("probs_dropped", s.T * s.N, s.S);
    attention_mask_ = b_.buffer("probs_mask", {s.T * s.N, s.S}, DType::kUInt8);
    b_.simple(OpKind::kDropout, {probs_}, {dropped_, attention_mask_});
  }
  b_.end_selective();
  b_.score_matmul(OpKind::kWeightedValues, {dropped_, m.mla ? kv_ : qkv_}, {out_}, 1);
}

void AttentionBranch::backward(BufferId grad) {
  const ShardShapes& s = b_.shapes();
  const BufferId g = enter_branch_backward(b_, "attn", end_, grad);
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
  std::vector<BufferId> in{dout};
  if (m.mla) {
    in.insert(in.end(), {qkv_, keys_, kv_});
  } else if (qk_ >= 0) {
    in.insert(in.end(), {qk_, qkv_});
  } else {
    in.push_back(qkv_);
  }
  if (s.flash) {
    in.insert(in.end(), {out_, lse_});
    b_.attention_backward(std::move(in), {dq_, dk_, dv_});
    return;
  }
  const BufferId values = m.mla ? kv_ : qkv_;
  const BufferId dprobs = b_.act("dprobs", s.T * s.N, s.S);
  b_.score_matmul(OpKind::kWeightedValuesBackward, {dout, dropped_, values}, {dprobs, dv_}, 2);
  if (attention_mask_ >= 0) b_.simple(OpKind::kDropoutBackward, {attention_mask_}, {dprobs});
  b_.simple(OpKind::kSoftmaxBackward, {probs_}, {dprobs});
  in.erase(in.begin());  // the scores' gradient needs queries and keys alone
  in.insert(in.begin(), dprobs);
  b_.score_matmul(OpKind::kScoresBackward, std::move(in), {dq_, dk_}, 2);
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
