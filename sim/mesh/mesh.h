// Mesh: which rank stands where. Axes from outermost to innermost: pp, dp_replicate, dp_shard, cp,
// tp.
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
  kTp,           ///< One layer's shards.
  kDpReplicate,  ///< Copies of the optimizer state.
  kDpShard,      ///< Shares one optimizer state.
  kDp,           ///< dp_replicate x dp_shard: all ranks that see different samples.
  kTie,          ///< First and last stage, which share tied embeddings.
  kWorld,
};

class Mesh {
 public:
  explicit Mesh(const Layout& layout);

  [[nodiscard]] int world_size() const { return pp_ * dp_replicate_ * dp_shard_ * cp_ * tp_; }
  [[nodiscard]] MeshCoord coord(int rank) const;
  [[nodiscard]] int rank(const MeshCoord& coord) const;
  /// Position among all data-parallel ranks: dp_replicate * degree(dp_shard) + dp_shard.
  [[nodiscard]] int dp_index(int rank) const;
  /// The ranks of the group of `kind` that holds `rank`, ascending in mesh order.
  [[nodiscard]] std::vector<int> group(GroupKind kind, int rank) const;
  /// The rank at the same place of another pipeline stage.
  [[nodiscard]] int rank_at_stage(int rank, int stage) const;

 private:
  int pp_, dp_replicate_, dp_shard_, cp_, tp_;
};

}  // namespace meshwright
