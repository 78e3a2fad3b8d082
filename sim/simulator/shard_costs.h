// ShardCosts: what the blocks of a model cost and hold on one rank, by shard and micro-batch.
//
// Reads: a Plan's shard, the CostModel. Feeds: StageCosts. A search meets few shards in many
// layouts, so they are kept in a cache.
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

/// Bandwidth to a tier of memory outside the device.
[[nodiscard]] inline BytesPerSecond tier_bandwidth(const DeviceSpec& d, MemoryTier tier) {
  return tier == MemoryTier::kNvme ? d.nvme_bandwidth : d.host_bandwidth;
}

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
  std::map<std::tuple<int,
                      bool,
                      int,
                      CpKind,
                      int,
                      bool,
                      int64_t,
                      Recompute,
                      bool,
                      bool,
                      Precision,
                      MemoryTier>,
           std::shared_ptr<const ShardCosts>>
      shards_;
  std::map<std::tuple<int, bool, int, bool, int, int, StageOrder, std::vector<int>, int64_t>,
           std::shared_ptr<const StagePlacements>>
      placements_;
};

}  // namespace meshwright
