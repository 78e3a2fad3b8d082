// What the plan verb prints: the ranking, what was rejected, and the advice beside it.
#pragma once

#include <vector>

#include "sim/advice/flop_count.h"
#include "sim/advice/what_if.h"
#include "sim/cli/verb.h"

namespace meshwright::cli {

/// What is shown beside the ranking.
struct PlanAdvice {
  FlopDefinition flops = FlopDefinition::kModel;
  std::vector<Challenge> challenges;
  std::vector<MemoryChallenge> more_memory;
  std::vector<RankedPlan> front;
};

[[nodiscard]] Json plan_json(const Problem& problem,
                             const PlannerResult& result,
                             const CostModel& cost,
                             const PlanAdvice& advice);
void print_plan(const Problem& problem,
                const PlannerResult& result,
                const CostModel& cost,
                const PlanAdvice& advice);

}  // namespace meshwright::cli
