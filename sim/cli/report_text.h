// Tables for people: terms of a step, memory by category, predicted against measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/report/step_report.h"

namespace meshwright::cli {

/// The terms of a step, largest first, with their share; zero terms are left out.
[[nodiscard]] std::string terms_text(const StepReport& report);

/// Memory by category, then the peak against `capacity`.
[[nodiscard]] std::string memory_text(const StepReport& report, Bytes capacity);

/// One line of a comparison. `rel_err` is (predicted - measured) / measured; nothing where measured
/// is zero.
struct ComparedTerm {
  std::string name;
  std::string unit;  ///< "s" or "bytes".
  double predicted = 0;
  double measured = 0;
  [[nodiscard]] std::optional<double> rel_err() const;
};

/// step_time_s, peak_memory_bytes, then all terms and memory categories.
[[nodiscard]] std::vector<ComparedTerm> compare_reports(const StepReport& predicted,
                                                        const StepReport& measured);
[[nodiscard]] std::string comparison_text(const std::vector<ComparedTerm>& terms);

}  // namespace meshwright::cli
