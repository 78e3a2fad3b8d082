// What "best" means: the fastest on the whole cluster, or the cheapest or smallest part of it.
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

enum class Objective { kTime, kCost, kGpus };

/// Numbers of devices that the search may use; only all of them for kTime. Ascending.
[[nodiscard]] std::vector<int> device_counts(const ClusterSpec& cluster, Objective objective);

/// Best first: by step time; by device time per step; or by devices, then step time. `examined`,
/// `feasible` and `rejected` are sums over the sizes; kGpus stops at the first size on which
/// something fits.
[[nodiscard]] PlannerResult plan_for(Objective objective,
                                     const std::shared_ptr<const Problem>& problem,
                                     const CostModel& cost,
                                     const PlannerOptions& options);

}  // namespace meshwright
