// Advice as JSON. For .cpp files only.
#pragma once

#include <vector>

#include "sim/advice/decision_flow.h"
#include "sim/advice/findings.h"
#include "sim/advice/hardware_guide.h"
#include "sim/advice/rule_checks.h"
#include "sim/advice/what_if.h"
#include "sim/core/json_reader.h"

namespace meshwright::cli {

[[nodiscard]] Json advice_json(const Challenge& challenge);
[[nodiscard]] Json advice_json(const MemoryChallenge& challenge);
[[nodiscard]] Json advice_json(const Diagnosis& diagnosis);
[[nodiscard]] Json advice_json(const DecisionFlow& flow);
[[nodiscard]] Json advice_json(const std::vector<RuleCheck>& checks);
[[nodiscard]] Json advice_json(const std::vector<DeviceRow>& rows);

}  // namespace meshwright::cli
