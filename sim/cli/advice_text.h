// Advice for people: counterfactuals, findings, the decision flow and the hardware guide as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/advice/decision_flow.h"
#include "sim/advice/findings.h"
#include "sim/advice/hardware_guide.h"
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
[[nodiscard]] std::string guide_text(const std::vector<DeviceRow>& rows);

/// "$1.2 M at $2.70 an hour (on demand, CoreWeave list ..., 2026-02)" per known price, or
/// "unknown".
[[nodiscard]] std::string cost_text(const DevicePrices& prices, double device_hours);

}  // namespace meshwright::cli
