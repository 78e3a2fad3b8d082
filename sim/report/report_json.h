// JSON form of StepReport and Action, shared by report.json, the plan file and the rank reports.
// For .cpp files only.
#pragma once

#include "sim/core/json_reader.h"
#include "sim/report/step_report.h"

namespace meshwright {

[[nodiscard]] Json report_to_json(const StepReport& report);
[[nodiscard]] Result<StepReport> report_from_json(const Json& json,
                                                  const std::string& origin,
                                                  const std::string& pointer);
[[nodiscard]] Json memory_to_json(const std::array<Bytes, kNumMemoryTerms>& memory);
[[nodiscard]] std::array<Bytes, kNumMemoryTerms> memory_from_json(ObjectReader& reader);

}  // namespace meshwright
