// The rule book's rules of thumb for a layout, each checked on the figures of one plan.
//
// Reads: a simulated plan, its CostModel and the decision flow. Feeds: advise, and the findings'
// count of micro-batches. Where a rule would cost time here, the check says so.
#pragma once

#include <string>
#include <vector>

#include "sim/advice/decision_flow.h"

namespace meshwright {

/// A rule of thumb checked on one plan.
struct RuleCheck {
  std::string rule;
  bool holds = true;
  std::string figures;
  std::string note;  ///< As in FlowStep.
};

/// Fewest micro-batches for a bubble below a tenth of the step: (P-1)/(V M + P-1) < 1/10, that is
/// V M > 9 (P-1).
[[nodiscard]] int64_t micro_batches_for_small_bubble(int pp, int virtual_stages);

/// tp inside a node, sp with tp, micro-batches, pipelines only where needed, KV heads.
[[nodiscard]] std::vector<RuleCheck> check_rules(const RankedPlan& plan,
                                                 const CostModel& cost,
                                                 const DecisionFlow& flow);

}  // namespace meshwright
