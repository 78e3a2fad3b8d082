// The step time of a plan in closed form, for the many layouts of a search.
//
// Reads: a Plan and its StageCosts, the prices that the event simulation plays. Feeds: planner and
// advice, which rank by it before they simulate.
#pragma once

#include "sim/simulator/stage_costs.h"

namespace meshwright {

/// The closed form that the planner ranks by: m max_r S_r + (sum_r S_r - max_r S_r) / v for equal
/// micro-batches (or the bubble of the schedule), plus exposed transfers, gradient reduction and
/// optimizer. A test holds it to simulate().
struct QuickEstimate {
  Seconds step_time;
  Bytes peak_memory;
};
[[nodiscard]] QuickEstimate estimate(const Plan& plan,
                                     const CostModel& cost,
                                     StageCostCache& cache);

/// Its time alone, from the plan's price list.
[[nodiscard]] Seconds estimate_time(const Plan& plan,
                                    const CostModel& cost,
                                    const StageCosts& costs);

}  // namespace meshwright
