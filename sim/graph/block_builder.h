// BlockBuilder: writes down the operators of one block, each with its figures.
//
// Reads: the shard's shapes. Feeds: the branches (attention, feed-forward) and sim/graph/
// model_graph.cpp, which compose a block from them; finish() derives the lifetimes.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/graph/model_graph.h"

namespace meshwright {

/// Sizes of one rank's shard of one micro-batch. T tokens of a context-parallel rank, TL tokens of
/// a sequence-parallel shard, D model width, N/K query and key/value heads of this rank, H head
/// width, F feed-forward width of this rank, V vocabulary rows of this rank, S sequence length.
struct ShardShapes {
  int64_t T = 0, TL = 0, D = 0, N = 0, K = 0, H = 0, F = 0, V = 0, S = 0;
  bool tp = false, sp = false, cpu = false, flash = true;
  int tp_degree = 1;
  int tp_index = 0;
  int ep = 1;
  int cp = 1;
  bool ulysses = false;   ///< Context parallelism by heads rather than by a ring.
  bool expert_tp = true;  ///< Experts' width split over tp.
  int lora_rank = 0;      ///< 0: all parameters are trained.
  bool nf4_base = false;
  double attention_span = 0;  ///< Workload::attention_span(), mean over the layers.
  DType act = DType::kFloat32;
};

[[nodiscard]] ShardShapes shard_shapes(const Plan& plan, int tp_index);

class BlockBuilder {
 public:
  BlockBuilder(BlockKind kind, const ModelSpec& model, const ShardShapes& s)
      : model_(model), s_(s) {
    block_.kind = kind;
  }

  [[nodiscard]] const ShardShapes& shapes() const { return s_; }
  [[nodiscard]] const ModelSpec& model() const { return model_; }
  [[nodiscard]] BlockGraph& block() { return block_; }

  BufferId buffer(std::string name, std::vector<int64_t> shape, DType dtype);
  /// Activation [rows, cols] in the activation format.
  BufferId act(std::string name, int64_t rows, int64_t cols);
  BufferId vec(std::string name, int64_t n);  ///< FP32 [n].
  /// [T, D] that only sequence parallelism needs, else nothing (-1).
  BufferId whole(std::string name) { return s_.sp ? act(std::move(name), s_.T, s_.D) : -1; }
  /// [TL, D] that only sequence parallelism needs, else nothing (-1).
  BufferId shard(std::string name) { return s_.sp ? act(std::move(name), s_.TL, s_.D) : -1; }

  /// Operators added from here on belong to backward.
  void to_backward() { ops_ = &backward_; }
  /// Marks the operators added to forward from here until the end of the scope as the selective
  /// recompute set.
  void begin_selective() { selective_begin_ = forward_.size(); }
  void end_selective() { selective_end_ = forward_.size(); }

  /// An operator that moves the bytes of its buffers once each.
  Operator& simple(OpKind kind,
                   std::vector<BufferId> in,
                   std::vector<BufferId> out,
                   ParamSlot p = ParamSlot::kNone);
  void linear(BufferId x, BufferId y, ParamSlot p, BufferId residual = -1);
  void linear_backward_input(BufferId dy, BufferId dx, ParamSlot p);
  void linear_backward_weight(BufferId dy, BufferId x, ParamSlot p);
  /// The last matmul is one of `groups` equal ones, each over 1/groups of its rows.
  void group_last(int64_t groups);

  /// y [T, D] partial over tp -> whole (all-reduce) or own token shard (reduce-scatter into
  /// `shard`).
  BufferId sum_partial(BufferId y, BufferId shard);
  /// x, or under sequence parallelism the whole of x gathered into `whole`.
  BufferId gathered(BufferId x, BufferId whole);
  void collective(OpKind kind,
                  std::vector<BufferId> in,
                  std::vector<BufferId> out,
                  Bytes payload,
                  OpGroup group = OpGroup::kTp);

  void attention(std::vector<BufferId> qkv, BufferId out, BufferId lse);
  void attention_backward(std::vector<BufferId> in, std::vector<BufferId> dqkv);
  /// A batched matmul over the score matrix: `matmuls` of 2 T S N H FLOP.
  void score_matmul(OpKind kind, std::vector<BufferId> in, std::vector<BufferId> out, int matmuls);

  [[nodiscard]] Bytes size(BufferId b) const;
  [[nodiscard]] BlockGraph finish(Recompute recompute);

 private:
  [[nodiscard]] int64_t rows(BufferId b) const;
  [[nodiscard]] int64_t cols(BufferId b) const;
  void matmul(OpKind kind,
              std::vector<BufferId> in,
              std::vector<BufferId> out,
              ParamSlot p,
              int64_t m,
              int64_t n,
              int64_t k,
              AdapterHalf adapter = AdapterHalf::kNone);
  [[nodiscard]] Flop attention_flop(double per_pair) const;
  [[nodiscard]] Bytes attention_workspace(bool backward) const;

  /// Whether a projection has a low-rank adapter beside its frozen weight.
  [[nodiscard]] bool adapted(ParamSlot p) const;
  /// Packed projections of a slot, each with an adapter of its own.
  [[nodiscard]] int parts(ParamSlot p) const;

  const ModelSpec& model_;
  ShardShapes s_;
  BlockGraph block_;
  std::vector<Operator> forward_;
  std::vector<Operator> backward_;
  std::vector<Operator>* ops_ = &forward_;
  std::map<ParamSlot, BufferId> adapter_, adapter_grad_;  ///< A x, and its gradient.
  size_t selective_begin_ = 0;
  size_t selective_end_ = 0;
};

}  // namespace meshwright
