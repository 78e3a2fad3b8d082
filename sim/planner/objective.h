// What "best" means: the fastest on the whole cluster, the cheapest or smallest part of it, or the
// layout that leaves most memory free for little time.
//
// The part of a cluster is a number of devices: powers of two up to a node, whole nodes in powers
// of two, and all of it. Each size is searched in full by plan_layouts(). Cost is device time per
// step: the price of a device-hour is the same for all sizes of one cluster, so the order needs no
// price.
#pragma once

#include <memory>
#include <vector>

#include "sim/planner/planner.h"

namespace meshwright {

enum class Objective { kTime, kCost, kGpus, kMemory };

/// kMemory gives away at most this fraction of the fastest step unless told otherwise: half of what
/// full recompute costs at most (a third of the model FLOP).
inline constexpr double kMemorySlack = 0.15;

/// Numbers of devices that the search may use; only all of them for kTime and kMemory. Ascending.
[[nodiscard]] std::vector<int> device_counts(const ClusterSpec& cluster, Objective objective);

/// Best first: by step time; by device time per step; by devices, then step time; or, of the
/// layouts at most `slack` slower than the fastest, by peak memory. `examined`, `feasible` and
/// `rejected` are sums over the sizes; kGpus stops at the first size on which something fits,
/// unless options.keep_feasible asks for all.
[[nodiscard]] PlannerResult plan_for(Objective objective,
                                     const std::shared_ptr<const Problem>& problem,
                                     const CostModel& cost,
                                     const PlannerOptions& options,
                                     double slack = kMemorySlack);

}  // namespace meshwright
