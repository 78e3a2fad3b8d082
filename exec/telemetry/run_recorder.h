// RunRecorder: keeps what each step measured, and makes the rank's report of it.
//
// Reads: StepResults. Feeds: rank<r>.json, from which the launcher makes the measured StepReport.
// Every step's spans are kept, because which step is the median one is known only at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/runtime/trainer.h"
#include "sim/report/rank_report.h"

namespace meshwright {

/// Index of the step whose time is the median of those after kWarmupSteps (the lower one of two; of
/// all steps when there are no others). `step_time_s` holds at least one step.
[[nodiscard]] int median_step(const std::vector<double>& step_time_s);

class RunRecorder {
 public:
  RunRecorder(int rank, std::string plan_hash) : rank_(rank), plan_hash_(std::move(plan_hash)) {}

  void add(StepResult step);

  /// Seconds of each step on this rank.
  [[nodiscard]] std::vector<double> step_times() const;

  /// `slowest_s` holds, per step, the longest time of any rank; `peak_bytes` is the allocator's
  /// peak.
  [[nodiscard]] RankReport report(const std::vector<double>& slowest_s,
                                  const ResidentBytes& resident,
                                  int64_t peak_bytes) const;

 private:
  int rank_;
  std::string plan_hash_;
  std::vector<StepResult> steps_;
};

}  // namespace meshwright
