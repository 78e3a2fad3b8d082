// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/feed_forward_branch.h"

#include "sim/mesh/shard.h"

namespace meshwright {
namespace {

OpKind activation(FfnKind ffn, bool backward) {
  switch (ffn) {
    case FfnKind::kSwiGlu:
      return backward ? OpKind::kSwiGluBackward : OpKind::kSwiGlu;
    case FfnKind::kGeGlu:
      return backward ? OpKind::kGeGluBackward : OpKind::kGeGlu;
    case FfnKind::kGelu:
      return backward ? OpKind::kGeluBackward : OpKind::kGelu;
    case FfnKind::kRelu:
      return backward ? OpKind::kReluBackward : OpKind::kRelu;
  }
  return OpKind::kSwiGlu;
}

}  // namespace

BranchEndSpec FeedForwardBranch::end_spec() const {
  const ModelSpec& m = b_.model();
  return {.name = "ffn",
          .projection = ParamSlot::kDown,
          .bias = m.linear_bias ? ParamSlot::kDownBias : ParamSlot::kNone,
          .post_norm = m.post_norms ? ParamSlot::kPostFfnNorm : ParamSlot::kNone};
}

int64_t FeedForwardBranch::local_experts() const {
  return b_.model().moe->num_experts / b_.shapes().ep;
}

BufferId FeedForwardBranch::forward(BufferId mid) {
  const ShardShapes& s = b_.shapes();
  norm_ = norm_forward(b_, "ffn", mid, s.TL, ParamSlot::kFfnNorm, ParamSlot::kFfnNormBias);
  if (moe_) {
    end_ = join_residual(b_, end_spec(), experts_forward(), mid, false);
  } else {
    const BufferId normed = b_.gathered(norm_.y, b_.whole("ffn_norm_whole"));
    dense_ = mlp_up("", normed, s.T, s.F, ParamSlot::kGateUp, ParamSlot::kDown, 1);
    end_ = end_branch(b_, end_spec(), dense_.act, mid);
  }
  return end_.output;
}

FeedForwardBranch::Mlp FeedForwardBranch::mlp_up(const std::string& name,
                                                 BufferId x,
                                                 int64_t rows,
                                                 int64_t width,
                                                 ParamSlot up,
                                                 ParamSlot down,
                                                 int64_t groups) {
  const ModelSpec& m = b_.model();
  Mlp mlp{.up = b_.act(
              name + (m.gated_ffn() ? "gate_up" : "up"), rows, width * (m.gated_ffn() ? 2 : 1)),
          .act = b_.act(name + "act", rows, width),
          .width = width,
          .up_slot = up,
          .down_slot = down};
  b_.linear(x, mlp.up, up);
  if (groups > 1) b_.group_last(groups);
  if (m.linear_bias && up == ParamSlot::kGateUp) {
    b_.simple(OpKind::kAddBias, {}, {mlp.up}, ParamSlot::kUpBias);
  }
  b_.simple(activation(m.ffn, false), {mlp.up}, {mlp.act});
  return mlp;
}

BufferId FeedForwardBranch::experts_forward() {
  const ShardShapes& s = b_.shapes();
  const MoeSpec& e = *b_.model().moe;
  const bool shares = e.d_ff_shared > 0;
  const BufferId whole =
      s.expert_tp || shares ? b_.gathered(norm_.y, b_.whole("ffn_norm_whole")) : -1;
  // Whole experts take the tokens of a sequence-parallel shard; else each tp rank has a part of the
  // experts' width and sends all tokens.
  const BufferId normed = s.expert_tp ? whole : norm_.y;
  const int64_t tokens = s.expert_tp ? s.T : s.TL;
  const int64_t rows = tokens * e.experts_per_token;
  const int64_t width =
      s.expert_tp ? shard_range(e.d_ff_expert, s.tp_degree, s.tp_index).size() : e.d_ff_expert;
  logits_ = b_.buffer("router_logits", {tokens, e.num_experts}, DType::kFloat32);
  weights_ = b_.buffer("router_weights", {tokens, e.experts_per_token}, DType::kFloat32);
  index_ = b_.buffer("router_index", {tokens, e.experts_per_token}, DType::kInt64);
  b_.linear(normed, logits_, ParamSlot::kRouter);
  b_.simple(OpKind::kRouter, {logits_}, {weights_, index_});
  rows_ = b_.act("expert_rows", rows, s.D);
  b_.simple(OpKind::kPermute, {normed, index_}, {rows_});
  expert_rows_ = rows;
  arrived_ = rows_;
  if (s.ep > 1) {
    arrived_ = b_.act("expert_rows_arrived", rows, s.D);
    b_.collective(OpKind::kAllToAll, {rows_}, {arrived_}, b_.size(rows_), OpGroup::kEp);
  }
  expert_ = mlp_up("expert_",
                   arrived_,
                   rows,
                   width,
                   ParamSlot::kExpertGateUp,
                   ParamSlot::kExpertDown,
                   local_experts());
  const BufferId down = b_.act("expert_out", rows, s.D);
  b_.linear(expert_.act, down, ParamSlot::kExpertDown);
  if (local_experts() > 1) b_.group_last(local_experts());
  returned_ = down;
  if (s.ep > 1) {
    returned_ = b_.act("expert_out_returned", rows, s.D);
    b_.collective(OpKind::kAllToAll, {down}, {returned_}, b_.size(down), OpGroup::kEp);
  }
  const BufferId y = b_.act("ffn_out", tokens, s.D);
  b_.simple(OpKind::kUnpermute, {returned_, weights_, index_}, {y});
  if (shares) {
    const int64_t shared = shard_range(e.d_ff_shared, s.tp_degree, s.tp_index).size();
    shared_ =
        mlp_up("shared_", whole, s.T, shared, ParamSlot::kSharedGateUp, ParamSlot::kSharedDown, 1);
    if (!s.expert_tp) {
      const BufferId part = b_.act("shared_out", s.T, s.D);
      b_.linear(shared_.act, part, ParamSlot::kSharedDown);
      b_.simple(OpKind::kAdd, {b_.sum_partial(part, b_.shard("shared_out_shard"))}, {y});
      return y;
    }
    b_.linear(shared_.act, y, ParamSlot::kSharedDown, y);
  }
  return s.expert_tp ? b_.sum_partial(y, b_.shard("ffn_out_shard")) : y;
}

void FeedForwardBranch::backward(BufferId grad) {
  const ShardShapes& s = b_.shapes();
  const BufferId own = enter_branch_backward(b_, "ffn", end_, grad);
  if (moe_) return experts_backward(own, grad);
  const BufferId g = b_.gathered(own, b_.whole("grad_whole_ffn"));
  const auto normed = [&] { return b_.gathered(norm_.y, b_.whole("ffn_norm_again")); };
  const BufferId dnorm = b_.act("dffn_norm", s.T, s.D);
  mlp_backward("", dense_, g, dnorm, normed, s.T, 1);
  norm_backward(b_, norm_, b_.sum_partial(dnorm, b_.shard("dffn_norm_shard")), grad);
}

void FeedForwardBranch::mlp_backward(const std::string& name,
                                     const Mlp& mlp,
                                     BufferId dy,
                                     BufferId dx,
                                     const std::function<BufferId()>& input,
                                     int64_t rows,
                                     int64_t groups) {
  const auto grouped = [&] {
    if (groups > 1) b_.group_last(groups);
  };
  const BufferId dact = b_.act("d" + name + "act", rows, mlp.width);
  b_.linear_backward_input(dy, dact, mlp.down_slot);
  grouped();
  b_.linear_backward_weight(dy, mlp.act, mlp.down_slot);
  grouped();
  b_.simple(activation(b_.model().ffn, true), {dact}, {mlp.up});
  if (b_.model().linear_bias && mlp.up_slot == ParamSlot::kGateUp) {
    b_.simple(OpKind::kBiasBackward, {mlp.up}, {}, ParamSlot::kUpBias);
  }
  b_.linear_backward_input(mlp.up, dx, mlp.up_slot);
  grouped();
  b_.linear_backward_weight(mlp.up, input(), mlp.up_slot);
  grouped();
}

void FeedForwardBranch::experts_backward(BufferId own, BufferId grad) {
  const ShardShapes& s = b_.shapes();
  const bool shares = shared_.up >= 0;
  const bool gathers = s.expert_tp || shares;
  const BufferId dy_whole = gathers ? b_.gathered(own, b_.whole("grad_whole_ffn")) : -1;
  const BufferId whole = gathers ? b_.gathered(norm_.y, b_.whole("ffn_norm_again")) : -1;
  const BufferId dy = s.expert_tp ? dy_whole : own;
  const BufferId normed = s.expert_tp ? whole : norm_.y;
  const int64_t tokens = s.expert_tp ? s.T : s.TL;
  const BufferId dnorm = b_.act("dffn_norm", tokens, s.D);
  routed_backward(dy, dnorm, normed, tokens);
  if (shares) {
    const BufferId from_shared = b_.act("dshared", s.T, s.D);
    mlp_backward(
        "shared_", shared_, dy_whole, from_shared, [&] { return whole; }, s.T, 1);
    const BufferId part =
        s.expert_tp ? from_shared : b_.sum_partial(from_shared, b_.shard("dshared_shard"));
    b_.simple(OpKind::kAdd, {part}, {dnorm});
  }
  const BufferId dn = s.expert_tp ? b_.sum_partial(dnorm, b_.shard("dffn_norm_shard")) : dnorm;
  norm_backward(b_, norm_, dn, grad);
}

void FeedForwardBranch::routed_backward(BufferId dy,
                                        BufferId dnorm,
                                        BufferId normed,
                                        int64_t tokens) {
  const ShardShapes& s = b_.shapes();
  const int64_t rows = expert_rows_;
  BufferId dout = b_.act("dexpert_out", rows, s.D);
  const BufferId dweights =
      b_.buffer("drouter_weights", {tokens, b_.model().moe->experts_per_token}, DType::kFloat32);
  b_.simple(OpKind::kUnpermuteBackward, {dy, returned_, weights_, index_}, {dout, dweights});
  if (s.ep > 1) {
    const BufferId arrived = b_.act("dexpert_out_arrived", rows, s.D);
    b_.collective(OpKind::kAllToAll, {dout}, {arrived}, b_.size(dout), OpGroup::kEp);
    dout = arrived;
  }
  BufferId drows = b_.act("dexpert_rows", rows, s.D);
  mlp_backward(
      "expert_", expert_, dout, drows, [&] { return arrived_; }, rows, local_experts());
  if (s.ep > 1) {
    const BufferId returned = b_.act("dexpert_rows_returned", rows, s.D);
    b_.collective(OpKind::kAllToAll, {drows}, {returned}, b_.size(drows), OpGroup::kEp);
    drows = returned;
  }
  b_.simple(OpKind::kPermuteBackward, {drows, index_}, {dnorm});
  b_.simple(OpKind::kRouterBackward, {dweights, weights_, index_}, {logits_});
  const BufferId from_router = b_.act("drouter", tokens, s.D);
  b_.linear_backward_input(logits_, from_router, ParamSlot::kRouter);
  b_.linear_backward_weight(logits_, normed, ParamSlot::kRouter);
  b_.simple(OpKind::kAdd, {from_router}, {dnorm});
}

}  // namespace meshwright
