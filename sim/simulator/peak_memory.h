// The peak memory of a plan: replayed, from short steps, and a lower bound.
//
// Reads: a Plan, its program and StageCosts. Feeds: simulate() (the whole step), the planner's
// estimate (short steps), and the bound that sorts out layouts before they are priced.
#pragma once

#include "sim/memory/replay.h"
#include "sim/simulator/stage_costs.h"

namespace meshwright {

struct StagePeak {
  MemoryProfile memory;
  int stage = 0;
};

/// Of the stage that needs most, over the whole of `program`.
[[nodiscard]] StagePeak peak_memory(const Plan& plan,
                                    const Program& program,
                                    const StageCosts& costs);

/// The same peak for a whole step, without walking all of it.
[[nodiscard]] Bytes estimate_peak_memory(const Plan& plan, const StageCosts& costs);

/// A lower bound of the peak that needs no walk of the step: what a rank holds before its first
/// activation, and the saved tensors of as many micro-batches as its schedule keeps in flight.
[[nodiscard]] Bytes memory_floor(const Plan& plan, const CostModel& cost, StageCostCache& cache);

}  // namespace meshwright
