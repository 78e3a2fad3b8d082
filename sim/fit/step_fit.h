// Fits the constants of models/fits/frameworks.json that its sets list as fitted.
//
// Reads: tables of published training steps, and the built-in document for structure and starting
// values. Feeds: `meshwright fit`. Residual: log(predicted / measured) per row, weighted so that a
// row counts less in a crowd of near repeats (one model, device): its cost is weighed by n^-0.3.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/validate/csv_table.h"
#include "sim/validate/training_case.h"

namespace meshwright {

/// A row of any table of measured steps.
[[nodiscard]] TrainingCase step_case(const CsvTable& table, size_t row);

struct StepFitReport {
  StepConstants constants;
  /// "set/key value +- relative error", one per fitted constant.
  std::vector<std::string> lines;
  size_t num_rows = 0;
};

/// `use` picks the rows to fit on (all when empty).
[[nodiscard]] Result<StepFitReport> fit_step_constants(
    const std::vector<const CsvTable*>& tables,
    const std::function<bool(const TrainingCase&)>& use = {});

/// The document with refitted values, as text. Errors: no row that can be predicted.
[[nodiscard]] Result<std::string> fit_steps(const std::vector<const CsvTable*>& tables);

}  // namespace meshwright
