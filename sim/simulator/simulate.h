// simulate(): one training step of a plan, predicted.
//
// Reads: a Plan and a CostModel. Expands the plan into the Program that the worker would run,
// prices every action, and plays the program as events. Feeds: planner, explain, simulate --trace,
// and the predicted half of compare.
//
// One rank stands for all ranks of its stage (data- and tensor-parallel peers do the same at the
// same time). Where ranks share a machine's cores, all active ranks progress at the same rate cores
// / active; elsewhere each rank has a device of its own.
#pragma once

#include <optional>
#include <string>

#include "sim/cost/cost_model.h"
#include "sim/memory/memory_bound.h"
#include "sim/memory/replay.h"
#include "sim/plan/plan.h"
#include "sim/report/step_report.h"
#include "sim/report/timeline.h"
#include "sim/simulator/stage_costs.h"

namespace meshwright {

struct Simulation {
  StepReport report;
  Timeline timeline;   ///< One rank per stage: the first of each.
  int peak_stage = 0;  ///< The stage with the highest peak memory.
  double mfu =
      0;  ///< Of causal model FLOP without recompute, of the data sheet's or measured peak. What
          ///< people are shown is utilization() (sim/advice), which names its definition.
  double bubble_fraction = 0;
  double tokens_per_s = 0;  ///< Of the whole job.
  bool fits = false;        ///< The upper bound of the peak is within the capacity.
};

/// `cache` may be shared by the calls of one search over one problem and cost model.
[[nodiscard]] Simulation simulate(const Plan& plan, const CostModel& cost, StageCostCache& cache);
[[nodiscard]] Simulation simulate(const Plan& plan, const CostModel& cost);

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

/// estimate() in parts, from the plan's price list.
[[nodiscard]] Seconds estimate_time(const Plan& plan,
                                    const CostModel& cost,
                                    const StageCosts& costs);
[[nodiscard]] Bytes estimate_peak_memory(const Plan& plan, const StageCosts& costs);

/// A lower bound of the peak that needs no walk of the step: what a rank holds before its first
/// activation, and the saved tensors of as many micro-batches as its schedule keeps in flight.
[[nodiscard]] Bytes memory_floor(const Plan& plan, const CostModel& cost, StageCostCache& cache);

}  // namespace meshwright
