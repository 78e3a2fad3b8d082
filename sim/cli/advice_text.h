// Advice for people: counterfactuals, findings, the decision flow and its rules as text.
#pragma once

#include <string>
#include <vector>

#include "sim/advice/decision_flow.h"
#include "sim/advice/findings.h"
#include "sim/advice/rule_checks.h"
#include "sim/advice/what_if.h"

namespace meshwright::cli {

/// One line per challenger and one for its crossings.
[[nodiscard]] std::string challenges_text(const RankedPlan& winner,
                                          const std::vector<Challenge>& challenges);
[[nodiscard]] std::string memory_challenges_text(const RankedPlan& winner,
                                                 const std::vector<MemoryChallenge>& challenges);
[[nodiscard]] std::string diagnosis_text(const Plan& plan,
                                         Seconds step_time,
                                         Bytes peak,
                                         const Diagnosis& diagnosis);
/// The flow, then how the search's winner compares with what it leads to.
[[nodiscard]] std::string flow_text(const DecisionFlow& flow, const RankedPlan* winner);
[[nodiscard]] std::string rules_text(const std::vector<RuleCheck>& checks);

}  // namespace meshwright::cli
