// PlacementTable: where every logical tensor lives, and how its gradient becomes whole.
//
// The one source for parameter and optimizer memory, gradient synchronisation, gradient norm and
// clip, and gradient comparison between layouts. A rank keeps its parameters in flat buckets, one
// per block (one more for experts that are spread over ep, one for low-rank adapters, one for what
// ZeRO-3 keeps whole, and one for the copy of a tied embedding on the last stage), so that a
// bucket's gradients are reduced by one collective without a copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/graph/operator.h"
#include "sim/mesh/mesh.h"
#include "sim/mesh/shard.h"
#include "sim/plan/plan.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {

/// One logical tensor over the mesh.
struct TensorPlacement {
  LogicalTensor logical;
  std::optional<int> tp_dim;  ///< Sharded over tp along this dim; otherwise replicated.
  int tp_copies = 1;          ///< Consecutive tp ranks that hold the same shard.
  /// The copies' gradients are partial sums (norms under sequence parallelism; key/value heads that
  /// several tp ranks share) and must be added; otherwise copies already have equal gradients.
  bool copies_are_partial = false;
  /// Pipeline ranks that hold it: two where the pipeline holds two copies of the model, and for a
  /// tied embedding whose head is on another rank.
  std::vector<int> stages;
  int head_stage = -1;  ///< Of a tied embedding: the other rank, which holds it as its head.
};

/// One tensor's shard inside a rank's bucket: [rows, cols], or [matrices, rows, cols] for experts,
/// at `offset` elements.
struct Segment {
  int tensor = 0;  ///< Index into PlacementTable::tensors().
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t matrix_begin = 0;  ///< First expert of this rank.
  int64_t row_begin = 0;     ///< Position in the logical tensor (a vector is a single column).
  int64_t col_begin = 0;
  int64_t offset = 0;
  bool counted =
      true;  ///< This copy counts in norms and totals; exactly one copy of each element does.
  int64_t matrices = 1;
  [[nodiscard]] int64_t numel() const { return matrices * rows * cols; }
};

/// What an operator reads as one matrix [rows, cols] (or a stack of them) at `offset` elements of
/// its bucket.
struct PackedParam {
  ParamSlot slot = ParamSlot::kNone;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t offset = 0;
  int64_t matrices = 1;
  AdapterHalf adapter = AdapterHalf::kNone;  ///< Of the projection `slot`.
};

/// Elements [offset, offset + numel) are partial sums over `copies` consecutive tp ranks.
struct PartialRange {
  int64_t offset = 0;
  int64_t numel = 0;
  int copies = 1;
};

struct Bucket {
  int block = 0;
  /// The experts of a block that are spread over ep: its gradients are reduced, and its states
  /// sharded, over the experts' own groups.
  bool experts = false;
  bool frozen = false;    ///< Not trained: no gradient, no optimizer state.
  bool adapters = false;  ///< The low-rank adapters of a block, beside its frozen bucket.
  /// ZeRO-3: too small to shard; whole on every rank, spread after each update.
  bool persistent = false;
  bool tied = false;  ///< Summed between embedding's and head's rank before any sharding.
  /// Holds a table that embedding and head share: its gradient is whole only when both are done.
  bool whole_at_end = false;
  std::vector<PackedParam> params;
  std::vector<Segment> segments;
  std::vector<PartialRange> partial;
  int64_t numel = 0;
  /// A multiple of the ranks that see different tokens, so that it divides over them; the padding
  /// stays zero.
  int64_t padded_numel = 0;
};

/// What one rank holds.
struct RankPlacement {
  std::vector<Bucket> buckets;                       ///< In block order.
  [[nodiscard]] int64_t parameters() const;          ///< Sum of numel.
  [[nodiscard]] int64_t padded_parameters() const;   ///< Sum of padded_numel.
  [[nodiscard]] int64_t trained_parameters() const;  ///< The same of what is not frozen.
  /// Bucket and packed matrix that `slot` of `block` reads. A tied head on the embedding's own
  /// stage reads its table.
  [[nodiscard]] std::pair<int, PackedParam> find(int block, ParamSlot slot) const;
};

class PlacementTable {
 public:
  explicit PlacementTable(const Plan& plan);

  [[nodiscard]] const std::vector<TensorPlacement>& tensors() const { return tensors_; }
  [[nodiscard]] RankPlacement of_rank(int rank) const;
  /// Elements of a bucket whose optimizer state (ZeRO-1), or whose part in the gradient norm, is
  /// this rank's.
  [[nodiscard]] ShardRange owned_range(const Bucket& bucket, int rank) const;
  /// Ranks that share an optimizer state hold different parts of it (ZeRO >= 1).
  [[nodiscard]] bool optimizer_sharded() const { return plan_.layout().zero_stage >= 1; }
  /// Among ranks with the same owned_range of a bucket, one counts it: the first.
  [[nodiscard]] bool counts_owned_range(const Bucket& bucket, int rank) const;

 private:
  Plan plan_;
  Mesh mesh_;
  std::vector<TensorPlacement> tensors_;
};

/// What the first rank of each pipeline rank's group holds.
[[nodiscard]] std::vector<RankPlacement> stage_placements(const Plan& plan);

}  // namespace meshwright
