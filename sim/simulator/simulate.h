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
  double bubble_fraction = 0;
  double tokens_per_s = 0;  ///< Of the whole job.
  bool fits = false;        ///< The upper bound of the peak is within the capacity.
};

/// `cache` may be shared by the calls of one search over one problem and cost model.
[[nodiscard]] Simulation simulate(const Plan& plan, const CostModel& cost, StageCostCache& cache);
[[nodiscard]] Simulation simulate(const Plan& plan, const CostModel& cost);

}  // namespace meshwright
