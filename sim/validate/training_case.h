// TrainingCase: one published training step as inputs of the step model, from its own columns.
//
// Reads: a row of a table of measured steps. Feeds: validate (prediction) and the fit of the
// constants. What a row leaves out is filled by its framework's default, and the case says that its
// inputs are not all known.
#pragma once

#include <optional>
#include <string>

#include "sim/step/step_constants.h"
#include "sim/step/step_memory.h"
#include "sim/step/step_time.h"
#include "sim/validate/csv_table.h"

namespace meshwright {

struct TrainingCase {
  std::string id, source, device, device_class, model;
  std::string framework;   ///< Profile, as the sets of constants name it.
  std::string rank_group;  ///< Rows of one model, cluster and batch.
  std::string layout_key;  ///< Equal for repeats of one layout.
  std::string skipped;     ///< Why the model cannot be asked; empty when it can.
  StepProblem problem;     ///< Without fitted constants.
  StepLayout layout;
  std::optional<double> measured_s;
  std::optional<double> measured_memory_gib;
  /// "GiB", or "GB" where the source prints that and may mean either; both are read as GiB.
  std::string memory_unit = "GiB";
  StateConvention states = StateConvention::kMegatron;
  bool inputs_assumed = false;   ///< Recompute or attention kernel not given.
  bool release_assumed = false;  ///< The year of the framework's release not given.
};

/// Of a file with the columns of the training tables.
[[nodiscard]] TrainingCase training_case(const CsvTable& table, size_t row);

/// `c.skipped` must be empty.
[[nodiscard]] StepTerms predict_case(const TrainingCase& c, const StepConstants& constants);

/// exp() of the half-width of the 80 % interval.
[[nodiscard]] double prediction_spread(const TrainingCase& c, const StepConstants& constants);

}  // namespace meshwright
