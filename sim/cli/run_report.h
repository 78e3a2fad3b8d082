// RunReport: report.json of a run, the plan's prediction beside what its ranks measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/plan/plan_file.h"
#include "sim/report/rank_report.h"
#include "sim/report/step_report.h"

namespace meshwright::cli {

struct RunReport {
  std::string plan_hash;
  std::vector<double> loss;  ///< Per step.
  std::optional<StepReport> predicted;
  StepReport measured;
  Timeline timeline;  ///< Of the median step; not part of report.json (it is trace.json).
};

/// Reads rank<r>.json of every rank in `dir`. Errors: a missing rank, a report of another plan.
[[nodiscard]] Result<RunReport> collect_run_report(const std::string& dir, const PlanFile& file);

/// Removes what an earlier run left in `dir`, so that its reports are not taken for this run's.
void remove_old_reports(const std::string& dir);

[[nodiscard]] std::string to_json_text(const RunReport& report);
[[nodiscard]] Result<RunReport> read_run_report(const std::string& path);

}  // namespace meshwright::cli
