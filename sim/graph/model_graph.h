// ModelGraph: the model as operator lists, per block, for one rank's shard of one micro-batch.
//
// Reads: a Plan and a tensor-parallel position. Feeds: sim/memory (buffer lifetimes), sim/cost
// (operator figures) and exec (which walks the same lists). Declared once: saved tensors are
// exactly those a backward operator reads, and lifetimes are derived, not written by hand. In a
// block the gradient of its output becomes, in place, the gradient of its input.
//
// Packed documents (Workload::document_lengths) change attention's FLOP and nothing else. Where
// only some layers have a window, attention's FLOP are the mean over the layers.
#pragma once

#include <vector>

#include "sim/graph/operator.h"
#include "sim/plan/plan.h"

namespace meshwright {

/// The kept kinds are the layers that do not recompute beside some that do.
enum class BlockKind : uint8_t {
  kEmbedding,
  kDecoder,
  kMoeDecoder,
  kHead,
  kKeptDecoder,
  kKeptMoeDecoder
};
inline constexpr int kNumBlockKinds = 6;

[[nodiscard]] constexpr bool is_decoder(BlockKind k) {
  return k != BlockKind::kEmbedding && k != BlockKind::kHead;
}

/// The operator lists of one kind of block. Buffers are local to one (block, micro-batch).
struct BlockGraph {
  BlockKind kind = BlockKind::kDecoder;
  std::vector<BufferSpec> buffers;
  BufferId input = -1;   ///< Handed over by the block before; -1 for the embedding.
  BufferId output = -1;  ///< Handed over to the block after; -1 for the head.
  BufferId grad = -1;    ///< Gradient of output, then of input; handed backwards. Made by the head.
  std::vector<OperatorStep> forward;
  std::vector<OperatorStep> recompute;  ///< Empty unless the plan recomputes this kind of block.
  std::vector<OperatorStep> backward;
  /// The same work in two passes, for schedules that put the second one off: what the block before
  /// waits for, and the weight gradients. What the second pass reads stays alive between them.
  std::vector<OperatorStep> backward_input;
  std::vector<OperatorStep> backward_weight;
  /// What backward_input hands to the block before; -1 for the embedding. Not `grad` itself where
  /// backward_weight still reads a value that an operator would have overwritten.
  BufferId input_grad = -1;
};

struct ModelGraph {
  BlockGraph blocks[kNumBlockKinds];  ///< Empty where the plan has no such block.
  std::vector<BlockKind> kinds;       ///< Of each block of the model.
  /// Local query and key/value heads, head width and sequence length: what rope and attention need
  /// to read qkv.
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t seq_len = 0;
  bool sequence_shards = false;  ///< Between tensor-parallel regions a rank has part of the tokens.
  int64_t position_offset = 0;   ///< Row of the position table of a sequence's first token.
  int64_t vocab_begin = 0;       ///< First vocabulary row of this shard.
  int64_t vocab_rows = 0;

  [[nodiscard]] const BlockGraph& of(BlockKind kind) const {
    return blocks[static_cast<int>(kind)];
  }
  [[nodiscard]] const BlockGraph& block(int index) const {
    return of(kinds[static_cast<size_t>(index)]);
  }
};

[[nodiscard]] BlockKind block_kind(const Plan& plan, int index);

/// The lists for tensor-parallel position `tp_index` (its vocabulary and feed-forward shards may be
/// shorter).
[[nodiscard]] ModelGraph build_model_graph(const Plan& plan, int tp_index);

/// Model FLOP of one token, forward and backward without recompute: 6 per matmul weight, plus
/// attention 6 * L * N * H * S (causal; arXiv:2104.04473's 12 L D S counts the full square). The
/// embedding is a lookup.
[[nodiscard]] Flop model_flop_per_token(const ModelSpec& model, int64_t seq_len);

}  // namespace meshwright
