// RankReport: what one worker measured, as it hands it to the launcher (rank<r>.json).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/report/step_report.h"
#include "sim/report/timeline.h"

namespace meshwright {

struct RankReport {
  int rank = 0;
  std::string plan_hash;
  std::vector<double> loss;         ///< Per step, mean over the global valid tokens.
  std::vector<double> step_time_s;  ///< Per step, of this rank.
  int median_step = 0;  ///< Index of the step whose slowest rank is the median after warm-up.
  Bytes peak_memory;    ///< Requested bytes over the steps after the first.
  std::array<Bytes, kNumMemoryTerms> memory{};
  RankTimeline timeline;  ///< Of the median step.
};

/// Steps left out of medians: allocator and caches settle.
inline constexpr int kWarmupSteps = 3;

[[nodiscard]] std::string to_json_text(const RankReport& report);
[[nodiscard]] Result<RankReport> parse_rank_report(std::string_view text,
                                                   const std::string& origin);

/// The measured StepReport: terms of the slowest rank in the median step, memory of the rank with
/// the highest peak.
[[nodiscard]] StepReport measured_report(const std::vector<RankReport>& ranks, const Mesh& mesh);

}  // namespace meshwright
