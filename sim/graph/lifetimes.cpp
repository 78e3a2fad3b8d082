// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/lifetimes.h"

#include <algorithm>
#include <set>

namespace meshwright {
namespace {

using BufferSet = std::set<BufferId>;

BufferSet mentioned(const std::vector<Operator>& ops) {
  BufferSet set;
  for (const Operator& op : ops) {
    set.insert(op.inputs.begin(), op.inputs.end());
    set.insert(op.outputs.begin(), op.outputs.end());
  }
  return set;
}

/// Walks `ops` with `live` buffers; buffers in `keep` outlive the list, all others end at their
/// last mention.
std::vector<OperatorStep> walk(const std::vector<Operator>& ops,
                               BufferSet& live,
                               const BufferSet& keep) {
  std::vector<OperatorStep> steps;
  for (size_t i = 0; i < ops.size(); ++i) {
    OperatorStep step{.op = ops[i], .allocates = {}, .releases = {}};
    for (const BufferId b : ops[i].outputs) {
      if (live.insert(b).second) step.allocates.push_back(b);
    }
    BufferSet here = mentioned({ops[i]});
    const BufferSet later =
        mentioned(std::vector<Operator>(ops.begin() + static_cast<long>(i) + 1, ops.end()));
    for (const BufferId b : here) {
      MW_CHECK(live.contains(b), "an operator reads a buffer that nobody wrote");
      if (keep.contains(b) || later.contains(b)) continue;
      step.releases.push_back(b);
      live.erase(b);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

/// The repeated operators of `forward` whose results `needed` (and so on, transitively) depends on.
std::vector<Operator> operators_to_repeat(const std::vector<Operator>& forward,
                                          const std::vector<bool>& repeated,
                                          BufferSet needed) {
  std::vector<Operator> kept;
  for (size_t i = forward.size(); i-- > 0;) {
    const Operator& op = forward[i];
    const bool used = std::any_of(
        op.outputs.begin(), op.outputs.end(), [&](BufferId b) { return needed.contains(b); });
    if (!repeated[i] || !used) continue;
    needed.insert(op.inputs.begin(), op.inputs.end());
    kept.push_back(op);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

void assign_lifetimes(BlockGraph& block,
                      const std::vector<Operator>& forward,
                      const std::vector<Operator>& backward,
                      const std::vector<bool>& repeated) {
  const BufferSet read_back = mentioned(backward);
  const std::vector<Operator> again = operators_to_repeat(forward, repeated, read_back);
  BufferSet dropped;  // written by repeated operators alone
  for (size_t i = 0; i < forward.size(); ++i) {
    for (const BufferId b : forward[i].outputs) {
      if (repeated[i]) dropped.insert(b);
    }
  }
  for (size_t i = 0; i < forward.size(); ++i) {
    if (repeated[i]) continue;
    for (const BufferId b : forward[i].outputs) dropped.erase(b);
  }

  BufferSet live;
  if (block.input >= 0) live.insert(block.input);
  BufferSet keep_forward = mentioned(again);
  keep_forward.insert(read_back.begin(), read_back.end());
  for (const BufferId b : dropped) keep_forward.erase(b);
  if (block.output >= 0) keep_forward.insert(block.output);
  block.forward = walk(forward, live, keep_forward);
  if (block.output >= 0) live.erase(block.output);  // the next block owns it now
  if (!again.empty()) block.recompute = walk(again, live, read_back);
  if (block.kind != BlockKind::kHead) live.insert(block.grad);  // handed over by the block after
  const BufferSet keep_grad =
      block.kind == BlockKind::kEmbedding ? BufferSet{} : BufferSet{block.grad};
  block.backward = walk(backward, live, keep_grad);
  live.erase(block.grad);
  MW_CHECK(live.empty(), "a buffer outlives its block");
}

}  // namespace meshwright
