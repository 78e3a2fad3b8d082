// The Pareto front: the layouts that no other one beats in everything.
//
// Reads: the feasible layouts of a search (PlannerOptions::keep_feasible). Axes: step time, peak
// memory of a rank, and, where the search used several sizes of the cluster, what the objective
// counts: devices, or device time per step (cost without a price). The front is taken of the
// closed form, simulated, and taken again of the simulated figures.
#pragma once

#include <vector>

#include "sim/planner/planner.h"

namespace meshwright {

/// What a front weighs beside step time and peak memory.
enum class FrontAxis : uint8_t { kNone, kDevices, kDeviceTime };

/// Indices of the points that no other point beats: no worse on each axis and better on one. Of
/// equal points the first stays. Lower is better; `points` are rows of equal length. Ascending by
/// the first axis.
[[nodiscard]] std::vector<size_t> pareto_front(const std::vector<std::vector<double>>& points);

/// The front over `candidates`, each simulated, ascending by step time. Layouts whose peaks differ
/// by less than `grain` of the peak count as equal in memory, so that the front shows choices and
/// not rounding; 0 keeps all. At most `limit` layouts are simulated, evenly over the front; a front
/// of more is thinned to them.
[[nodiscard]] std::vector<RankedPlan> simulated_front(const std::vector<Candidate>& candidates,
                                                      const CostModel& cost,
                                                      FrontAxis axis,
                                                      double grain,
                                                      size_t limit);

}  // namespace meshwright
