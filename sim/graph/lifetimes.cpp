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

/// The operators of `forward` whose results `needed` (and so on, transitively) depends on.
std::vector<Operator> live_operators(const std::vector<Operator>& forward, BufferSet needed) {
  std::vector<Operator> kept;
  for (auto op = forward.rbegin(); op != forward.rend(); ++op) {
    const bool used = std::any_of(
        op->outputs.begin(), op->outputs.end(), [&](BufferId b) { return needed.contains(b); });
    if (!used) continue;
    needed.insert(op->inputs.begin(), op->inputs.end());
    kept.push_back(*op);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

void assign_lifetimes(BlockGraph& block,
                      const std::vector<Operator>& forward,
                      const std::vector<Operator>& backward,
                      bool recompute) {
  const BufferSet read_back = mentioned(backward);
  BufferSet live;
  if (block.input >= 0) live.insert(block.input);
  BufferSet keep_forward;
  if (block.output >= 0) keep_forward.insert(block.output);
  if (recompute) {
    keep_forward.insert(block.input);
  } else {
    keep_forward.insert(read_back.begin(), read_back.end());
  }
  block.forward = walk(forward, live, keep_forward);
  if (block.output >= 0) live.erase(block.output);  // the next block owns it now
  if (recompute) {
    block.recompute = walk(live_operators(forward, read_back), live, read_back);
  }
  if (block.kind != BlockKind::kHead) live.insert(block.grad);  // handed over by the block after
  const BufferSet keep_grad =
      block.kind == BlockKind::kEmbedding ? BufferSet{} : BufferSet{block.grad};
  block.backward = walk(backward, live, keep_grad);
  live.erase(block.grad);
  MW_CHECK(live.empty(), "a buffer outlives its block");
}

}  // namespace meshwright
