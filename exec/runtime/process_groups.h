// The process groups of one rank, one per distinct list of ranks that a plan's communication needs.
//
// All are made at the start, by all ranks in the same order: a group made on first use would
// deadlock as soon as two ranks first used two groups in a different order.
#pragma once

#include <map>
#include <memory>

#include "exec/comm/communicator.h"
#include "sim/plan/plan.h"
#include "sim/schedule/placement.h"

namespace meshwright {

struct ProcessGroups {
  std::shared_ptr<Communicator> world;
  std::shared_ptr<Communicator> tp;
  std::shared_ptr<Communicator> dp;  ///< dp_replicate x dp_shard, and the other copy of the model.
  std::shared_ptr<Communicator> dp_shard;
  std::shared_ptr<Communicator> dp_replicate;  ///< And the other copy of the model.
  /// The ranks at this place of every stage, in stage order.
  std::shared_ptr<Communicator> pipeline;
  /// First and last stage; null on other stages and without a tie.
  std::shared_ptr<Communicator> tie;
  /// Consecutive tensor-parallel ranks that hold copies whose gradients are partial sums, by their
  /// number.
  std::map<int, std::shared_ptr<Communicator>> copies;
};

/// Blocks until all groups of this rank are connected. Every rank of the job must call it.
[[nodiscard]] ProcessGroups make_process_groups(CommWorld& world,
                                                const Plan& plan,
                                                const PlacementTable& table);

}  // namespace meshwright
