// Mesh: which rank stands where. Axes from outermost to innermost: pp, dp_replicate, dp_shard, cp,
// tp.
//
// Experts have an axis of their own over the same ranks: those with different tokens (dp_replicate,
// dp_shard, cp and, where experts are not split over tp, tp) are numbered in that order; ep
// consecutive ones share a layer's experts (expert position = number mod ep).
//
// tp is innermost so that a tensor-parallel group lies inside a node; pp is outermost because it
// talks least.
#pragma once

#include <vector>

#include "sim/mesh/layout.h"

namespace meshwright {

/// A rank's position on each axis.
struct MeshCoord {
  int pp = 0;
  int dp_replicate = 0;
  int dp_shard = 0;
  int cp = 0;
  int tp = 0;
  friend bool operator==(const MeshCoord&, const MeshCoord&) = default;
};

/// The sets of ranks that communicate.
enum class GroupKind : uint8_t {
  kTp,               ///< One layer's shards.
  kCp,               ///< One sequence.
  kDpReplicate,      ///< Copies of the dense parameters' optimizer state.
  kDpShard,          ///< dp_shard x cp: shares one such state.
  kDp,               ///< dp_replicate x dp_shard x cp: same dense parameters, other tokens.
  kEp,               ///< One layer's experts.
  kExpertReplicate,  ///< Copies of the experts' optimizer state.
  kExpertShard,      ///< Shares one such state.
  kExpertDp,         ///< Same experts, other tokens.
  kTie,              ///< First and last stage, which share tied embeddings.
  kWorld,
};

class Mesh {
 public:
  explicit Mesh(const Layout& layout);

  [[nodiscard]] int world_size() const { return pp_ * dp_replicate_ * dp_shard_ * cp_ * tp_; }
  [[nodiscard]] MeshCoord coord(int rank) const;
  [[nodiscard]] int rank(const MeshCoord& coord) const;
  /// Which samples a rank reads: dp_replicate * degree(dp_shard) + dp_shard.
  [[nodiscard]] int dp_index(int rank) const;
  /// Position in a group of a kind.
  [[nodiscard]] int index_in(GroupKind kind, int rank) const;
  /// The ranks of the group of `kind` that holds `rank`, ascending in mesh order.
  [[nodiscard]] std::vector<int> group(GroupKind kind, int rank) const;
  /// The rank at the same place of another pipeline stage.
  [[nodiscard]] int rank_at_stage(int rank, int stage) const;

 private:
  /// Position among the ranks that experts are spread over, and the tp position they fix.
  struct ExpertPlace {
    int index = 0;
    int tp = 0;
  };
  [[nodiscard]] ExpertPlace expert_place(const MeshCoord& coord) const;
  [[nodiscard]] int rank_of(const MeshCoord& like, const ExpertPlace& place) const;
  [[nodiscard]] std::vector<int> expert_group(GroupKind kind, const MeshCoord& coord) const;

  int pp_, dp_replicate_, dp_shard_, cp_, tp_;
  int ep_, expert_shards_;
  bool expert_tp_;
};

}  // namespace meshwright
