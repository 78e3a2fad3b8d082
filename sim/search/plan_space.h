// The legal layouts of a problem on a GPU cluster, as a search space.
//
// Reads: a Problem (cluster, model, workload). Feeds: search(). All divisor degrees of tensor,
// pipeline, context and expert parallelism; 1F1B, interleaved and zero-bubble schedules; ZeRO 0, 1
// and 3; recompute none and full; sequence parallelism on and off; networks by place. Left out:
// ZeRO-2, whose scatter of every micro-batch the step model does not price.
#pragma once

#include <optional>

#include "sim/plan/plan.h"
#include "sim/search/search_space.h"

namespace meshwright {

struct PlanSearch {
  StepProblem problem;
  SearchSpace space;
};

/// Nothing where step_stack() knows no device: CPU ranks, a class without fitted constants.
[[nodiscard]] std::optional<PlanSearch> plan_search(const Problem& problem);

}  // namespace meshwright
