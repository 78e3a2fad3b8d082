// Durations of a stage's actions: the price list that the event simulation and the closed form
// share.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "sim/cost/cost_model.h"
#include "sim/memory/replay.h"
#include "sim/plan/plan.h"
#include "sim/schedule/placement.h"
#include "sim/schedule/program.h"

namespace meshwright {

/// Costs of the lists of each kind of block; the same on all stages. The two halves of a split
/// backward add up to it.
struct BlockCosts {
  ListCost forward, recompute, backward, backward_input, backward_weight;
  [[nodiscard]] const ListCost& of(ActionKind kind) const;
};

/// What depends on the shard and the micro-batch alone, not on the rest of the layout.
struct ShardCosts {
  ModelGraph graph;
  StageFootprints footprints;
  BlockCosts blocks[kNumBlockKinds];
};

/// One placement per pipeline rank: that of its first rank of the job.
using StagePlacements = std::vector<RankPlacement>;

/// Shares ShardCosts and StagePlacements between the layouts of one search. One problem and one
/// CostModel per cache. Not thread-safe.
class StageCostCache {
 public:
  [[nodiscard]] std::shared_ptr<const ShardCosts> shard(const Plan& plan, const CostModel& cost);
  [[nodiscard]] std::shared_ptr<const StagePlacements> placements(const Plan& plan);

 private:
  std::map<std::tuple<int, bool, int, int64_t, Recompute, bool, Precision>,
           std::shared_ptr<const ShardCosts>>
      shards_;
  std::map<std::tuple<int, bool, int, int, int, int, StageOrder, std::vector<int>>,
           std::shared_ptr<const StagePlacements>>
      placements_;
};

class StageCosts {
 public:
  StageCosts(const Plan& plan, const CostModel& cost, StageCostCache& cache);

  /// Work of an action that walks blocks.
  [[nodiscard]] ListCost blocks(const Action& action) const;
  /// Time of any other action once its partners are there; zero for those that only start or wait.
  [[nodiscard]] Seconds duration(const Action& action, int stage) const;
  /// What a rank does before its first action: zeroing gradients.
  [[nodiscard]] Seconds step_start(int stage) const;
  [[nodiscard]] Seconds transfer() const {
    return transfer_;
  }  ///< One activation between neighbouring stages.
  [[nodiscard]] Seconds reduce(int stage, int bucket) const;
  [[nodiscard]] Seconds gather(int stage, int bucket) const;
  [[nodiscard]] const BlockCosts& of(BlockKind kind) const {
    return shard_->blocks[static_cast<int>(kind)];
  }
  [[nodiscard]] const StagePlacements& placements() const { return *placements_; }
  [[nodiscard]] const RankPlacement& placement(int stage) const {
    return (*placements_)[static_cast<size_t>(stage)];
  }
  [[nodiscard]] const StageFootprints& footprints() const { return shard_->footprints; }

 private:
  Plan plan_;
  const CostModel& cost_;
  std::shared_ptr<const ShardCosts> shard_;
  std::shared_ptr<const StagePlacements> placements_;
  GroupShape tp_, dp_, dp_shard_, dp_replicate_, tie_, world_;
  Seconds transfer_;
};

}  // namespace meshwright
