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

/// A backward list in two passes.
struct SplitBackward {
  std::vector<Operator> input;
  std::vector<Operator> weight;
  BufferId input_grad = -1;
};

void rename(std::vector<BufferId>& ids, BufferId from, BufferId to) {
  std::replace(ids.begin(), ids.end(), from, to);
}

SplitBackward split_backward_list(BlockGraph& block, std::vector<Operator> ops, BufferId handed) {
  // Operators of the first pass: those that the handed gradient depends on.
  std::vector<bool> first(ops.size());
  BufferSet needed;
  if (handed >= 0) needed.insert(handed);
  for (size_t i = ops.size(); i-- > 0;) {
    first[i] = std::any_of(ops[i].outputs.begin(), ops[i].outputs.end(), [&](BufferId b) {
      return needed.contains(b);
    });
    if (first[i]) needed.insert(ops[i].inputs.begin(), ops[i].inputs.end());
  }
  BufferSet deferred_reads;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!first[i]) {
      deferred_reads.insert(ops[i].inputs.begin(), ops[i].inputs.end());
      continue;
    }
    for (size_t o = 0; o < ops[i].outputs.size(); ++o) {
      const BufferId old = ops[i].outputs[o];
      if (!deferred_reads.contains(old)) continue;
      BufferSpec spec = block.buffers[static_cast<size_t>(old)];
      spec.name += "_next";
      block.buffers.push_back(std::move(spec));
      const auto fresh = static_cast<BufferId>(block.buffers.size()) - 1;
      ops[i].inputs.push_back(old);  // what was updated in place is now read
      ops[i].outputs[o] = fresh;
      for (size_t later = i + 1; later < ops.size(); ++later) {
        rename(ops[later].inputs, old, fresh);
        rename(ops[later].outputs, old, fresh);
      }
      if (handed == old) handed = fresh;
    }
  }
  SplitBackward split;
  split.input_grad = handed;
  for (size_t i = 0; i < ops.size(); ++i)
    (first[i] ? split.input : split.weight).push_back(std::move(ops[i]));
  return split;
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
  const BufferId handed = block.kind == BlockKind::kEmbedding ? -1 : block.grad;
  BufferSet keep_grad;
  if (handed >= 0) keep_grad.insert(handed);
  BufferSet split_live = live;
  block.backward = walk(backward, live, keep_grad);
  live.erase(block.grad);
  MW_CHECK(live.empty(), "a buffer outlives its block");

  const SplitBackward split = split_backward_list(block, backward, handed);
  block.input_grad = split.input_grad;
  BufferSet keep_split = mentioned(split.weight);
  if (split.input_grad >= 0) keep_split.insert(split.input_grad);
  block.backward_input = walk(split.input, split_live, keep_split);
  if (split.input_grad >= 0) split_live.erase(split.input_grad);
  block.backward_weight = walk(split.weight, split_live, {});
  MW_CHECK(split_live.empty(), "a buffer outlives its split backward");
}

}  // namespace meshwright
