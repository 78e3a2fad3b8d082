// PlanFile: a Plan on disk, with the prediction it was chosen for.
//
// The decision {model, cluster, workload, layout} is stored whole and hashed over its canonical
// JSON, so that a file that was edited, or is run with another world size, is refused and not
// silently run.
#pragma once

#include <optional>
#include <string>

#include "sim/plan/plan.h"
#include "sim/report/step_report.h"

namespace meshwright {

struct Provenance {
  std::string tool_version;
  std::string date;            ///< ISO 8601, UTC.
  std::string calibration_id;  ///< Empty: priced from data sheets.
};

struct PlanFile {
  Plan plan;
  std::string hash;  ///< plan_hash(plan).
  std::optional<StepReport> predicted;
  Provenance provenance;
};

/// 16 hexadecimal digits over the canonical JSON of the decision.
[[nodiscard]] std::string plan_hash(const Plan& plan);

[[nodiscard]] std::string to_json_text(const PlanFile& file);
[[nodiscard]] Result<Ok> write_plan_file(const std::string& path, const PlanFile& file);

/// Errors: missing file, broken JSON, unknown key, another schema version, a hash that does not
/// match the decision, a layout that breaks a rule (the first violation).
[[nodiscard]] Result<PlanFile> read_plan_file(const std::string& path);

}  // namespace meshwright
