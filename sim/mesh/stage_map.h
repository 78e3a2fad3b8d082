// StageMap: the virtual stages of a pipeline, which blocks they hold and on which pipeline rank.
//
// A virtual stage is one part of one copy of the model. Activations flow from a stage to `next`,
// gradients back. Under interleaved and zb_v a pipeline rank holds several parts, under dualpipe a
// part of each of two copies that are fed from opposite ends. Feeds: schedules, placement,
// simulator. Numbers: copy * parts + part, so that a plain pipeline's stage is its rank.
#pragma once

#include <vector>

#include "sim/mesh/layout.h"

namespace meshwright {

struct VirtualStage {
  int rank = 0;  ///< Pipeline rank (a coordinate of the mesh, not a rank of the job).
  int copy = 0;  ///< Of the model.
  int block_begin = 0;
  int block_end = 0;
  int previous = -1;  ///< The stage whose output this one takes; -1 at the embedding.
  int next = -1;      ///< -1 at the head.
};

class StageMap {
 public:
  /// `layout.stages` is filled.
  explicit StageMap(const Layout& layout);

  [[nodiscard]] int size() const { return static_cast<int>(stages_.size()); }
  [[nodiscard]] const VirtualStage& operator[](int id) const {
    return stages_[static_cast<size_t>(id)];
  }
  /// Virtual stages on a pipeline rank, ascending.
  [[nodiscard]] const std::vector<int>& of_rank(int rank) const {
    return of_rank_[static_cast<size_t>(rank)];
  }

 private:
  std::vector<VirtualStage> stages_;
  std::vector<std::vector<int>> of_rank_;
};

}  // namespace meshwright
