// What every residual branch of a layer shares: its norm, how its output joins the residual stream,
// and the way back.
//
// Reads: the model's norm, bias, dropout and post-norm. Feeds: attention_branch and
// feed_forward_branch. In a block the gradient of its output becomes, in place, the gradient of its
// input.
#pragma once

#include <string>

#include "sim/graph/block_builder.h"

namespace meshwright {

/// RMSNorm or LayerNorm of [rows, D].
struct NormState {
  BufferId x = -1;
  BufferId y = -1;
  BufferId stats = -1;
  ParamSlot weight = ParamSlot::kNone;
  OpKind backward = OpKind::kRmsNormBackward;
};
NormState norm_forward(BlockBuilder& b,
                       const std::string& name,
                       BufferId x,
                       int64_t rows,
                       ParamSlot weight,
                       ParamSlot bias);
/// Adds the gradient of x to `dx`.
void norm_backward(BlockBuilder& b, const NormState& norm, BufferId dy, BufferId dx);

/// The end of a branch: row-parallel projection, sum over tp, bias, dropout, post-norm, residual.
struct BranchEnd {
  BufferId input = -1;  ///< What the projection read [T, .].
  BufferId output = -1;
  BufferId mask = -1;  ///< Of the dropout; -1 without.
  ParamSlot bias = ParamSlot::kNone;
  NormState post_norm;
};
struct BranchEndSpec {
  std::string name;  ///< "attn" or "ffn".
  ParamSlot projection = ParamSlot::kNone;
  ParamSlot bias = ParamSlot::kNone;       ///< kNone without.
  ParamSlot post_norm = ParamSlot::kNone;  ///< kNone without.
};
BranchEnd end_branch(BlockBuilder& b, const BranchEndSpec& spec, BufferId input, BufferId residual);

/// Everything after the sum over tp, for a branch output [TL, D]; `fused` where it holds the
/// residual already.
BranchEnd join_residual(
    BlockBuilder& b, const BranchEndSpec& spec, BufferId y, BufferId residual, bool fused);

/// From the block's gradient to that of what was summed over tp [TL, D].
BufferId enter_branch_backward(BlockBuilder& b,
                               const std::string& name,
                               const BranchEnd& end,
                               BufferId grad);

}  // namespace meshwright
