// Durations of a stage's actions: the price list that the event simulation and the closed form
// share.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "sim/mesh/state_bytes.h"
#include "sim/simulator/shard_costs.h"
#include "sim/step/replica_exchange.h"

namespace meshwright {

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
  /// Of the reduction, or gathering, that an action starts, what can run behind computation; the
  /// rest is the duration of the action that waits for it.
  [[nodiscard]] Seconds behind(const Action& action, int stage) const;
  [[nodiscard]] const BlockCosts& of(BlockKind kind) const {
    return shard_->blocks[static_cast<int>(kind)];
  }
  [[nodiscard]] const StagePlacements& placements() const { return *placements_; }
  [[nodiscard]] const RankPlacement& placement(int stage) const {
    return (*placements_)[static_cast<size_t>(stage)];
  }
  [[nodiscard]] const StageFootprints& footprints() const { return shard_->footprints; }

 private:
  /// The groups that hold the same parameters.
  struct Replicas {
    GroupShape all, shard, replicate;
  };

  [[nodiscard]] const Bucket& bucket(int stage, int index) const;
  [[nodiscard]] Seconds whole_reduce(const Bucket& b, bool joined) const;
  [[nodiscard]] Seconds reduce_alone(double numel, bool experts) const;
  [[nodiscard]] Seconds whole_gather(const Bucket& b) const;
  [[nodiscard]] double hidden_share() const;
  /// What of an exchange nothing hides.
  [[nodiscard]] Seconds shown(const Bucket& b, Seconds exchange, bool gather) const;

  Plan plan_;
  const CostModel& cost_;
  std::shared_ptr<const ShardCosts> shard_;
  std::shared_ptr<const StagePlacements> placements_;
  StateBytes states_;
  ShardGroups groups_;
  Replicas dense_, experts_;
  GroupShape tie_, world_;
  std::optional<ReplicaExchange> exchange_;  ///< Where the step model prices the plan.
  /// Per block, how many of each kind come before it.
  std::vector<std::array<int, kNumBlockKinds>> prefix_;
  Seconds transfer_;
};

}  // namespace meshwright
