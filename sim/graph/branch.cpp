// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/branch.h"

namespace meshwright {

NormState norm_forward(BlockBuilder& b,
                       const std::string& name,
                       BufferId x,
                       int64_t rows,
                       ParamSlot weight,
                       ParamSlot bias) {
  const bool layer_norm = b.model().norm == NormKind::kLayerNorm && bias != ParamSlot::kNone;
  NormState n{.x = x, .y = b.act(name + "_norm", rows, b.shapes().D), .weight = weight};
  n.stats = b.vec(name + (layer_norm ? "_stats" : "_rstd"), layer_norm ? 2 * rows : rows);
  b.simple(layer_norm ? OpKind::kLayerNorm : OpKind::kRmsNorm, {x}, {n.y, n.stats}, weight);
  if (layer_norm) n.backward = OpKind::kLayerNormBackward;
  return n;
}

void norm_backward(BlockBuilder& b, const NormState& n, BufferId dy, BufferId dx) {
  b.simple(n.backward, {dy, n.x, n.stats}, {dx}, n.weight);
}

BranchEnd end_branch(BlockBuilder& b,
                     const BranchEndSpec& spec,
                     BufferId input,
                     BufferId residual) {
  const ShardShapes& s = b.shapes();
  const bool plain =
      spec.bias == ParamSlot::kNone && spec.post_norm == ParamSlot::kNone && b.model().dropout == 0;
  const bool fused = plain && !s.tp;  // the projection adds the residual itself
  const BufferId y = b.act(spec.name + "_out", s.T, s.D);
  b.linear(input, y, spec.projection, fused ? residual : -1);
  BranchEnd end =
      join_residual(b, spec, b.sum_partial(y, b.shard(spec.name + "_out_shard")), residual, fused);
  end.input = input;
  return end;
}

BranchEnd join_residual(
    BlockBuilder& b, const BranchEndSpec& spec, BufferId y, BufferId residual, bool fused) {
  const ShardShapes& s = b.shapes();
  BranchEnd end{.bias = spec.bias};
  if (spec.bias != ParamSlot::kNone) b.simple(OpKind::kAddBias, {}, {y}, spec.bias);
  if (b.model().dropout > 0) {
    end.mask = b.buffer(spec.name + "_mask", {s.TL, s.D}, DType::kUInt8);
    b.simple(OpKind::kDropout, {}, {y, end.mask}, spec.projection);
  }
  if (spec.post_norm != ParamSlot::kNone) {
    end.post_norm = norm_forward(b, spec.name + "_post", y, s.TL, spec.post_norm, ParamSlot::kNone);
    y = end.post_norm.y;
  }
  if (!fused) b.simple(OpKind::kAdd, {residual}, {y});
  end.output = y;
  return end;
}

BufferId enter_branch_backward(BlockBuilder& b,
                               const std::string& name,
                               const BranchEnd& end,
                               BufferId grad) {
  const ShardShapes& s = b.shapes();
  BufferId dy = grad;
  if (end.post_norm.x >= 0) {
    dy = b.act("d" + name + "_branch", s.TL, s.D);
    b.simple(OpKind::kZero, {}, {dy});
    norm_backward(b, end.post_norm, grad, dy);
  }
  if (end.mask >= 0) {
    const BufferId kept = dy == grad ? b.act("d" + name + "_kept", s.TL, s.D) : dy;
    b.simple(OpKind::kDropoutBackward,
             dy == grad ? std::vector{grad, end.mask} : std::vector{end.mask},
             {kept});
    dy = kept;
  }
  if (end.bias != ParamSlot::kNone) b.simple(OpKind::kBiasBackward, {dy}, {}, end.bias);
  return dy;
}

}  // namespace meshwright
