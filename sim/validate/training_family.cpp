// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/training_family.h"

#include <set>
#include <utility>

#include "sim/step/training_case.h"

namespace meshwright {
namespace {

constexpr double kBytesPerGiB = 1073741824.0;

ValidatedRow time_row(const TrainingCase& c, int64_t line, const StepConstants& constants) {
  ValidatedRow row{.line = line,
                   .id = c.id,
                   .source = c.source,
                   .device = c.device,
                   .unit = "s",
                   .measured = c.measured_s,
                   .skipped = c.skipped};
  if (!c.skipped.empty()) return row;
  const double predicted = predict_case(c, constants).total_s();
  const double spread = prediction_spread(c, constants);
  row.predicted = predicted;
  row.bound_low = predicted / spread;
  row.bound_high = predicted * spread;
  return row;
}

/// bound_high is what a plan leaves room for, so that it holds for 95 of 100; bound_low the same
/// distance below.
ValidatedRow memory_row(const TrainingCase& c, int64_t line) {
  ValidatedRow row{.line = line,
                   .id = c.id + " memory",
                   .source = c.memory_source,
                   .device = c.device,
                   .unit = "GiB",
                   .measured = c.measured_memory_gib,
                   .skipped = c.skipped};
  if (!c.skipped.empty()) return row;
  const double bytes = peak_memory(c.problem, c.states, c.layout).allocated_bytes();
  row.predicted = bytes / kBytesPerGiB;
  row.bound_high = memory_upper_bound(bytes) / kBytesPerGiB;
  row.bound_low = *row.predicted * *row.predicted / *row.bound_high;
  return row;
}

}  // namespace

std::vector<ValidatedRow> predict_training_rows(const CsvTable& table) {
  const Result<StepConstants> constants = StepConstants::builtin();
  MW_CHECK(constants.has_value(), to_string(constants.error()));
  std::vector<ValidatedRow> rows;
  std::set<std::string> layouts;
  for (size_t i = 0; i < table.num_rows(); ++i) {
    const TrainingCase c = training_case(table, i);
    rows.push_back(time_row(c, table.line(i), *constants));
    // Repeats and later releases of one layout are no choice between layouts: the first stands for
    // them.
    if (c.skipped.empty() && layouts.insert(c.layout_key).second) {
      rows.back().rank_group = c.rank_group;
    }
    if (c.measured_memory_gib) rows.push_back(memory_row(c, table.line(i)));
  }
  return rows;
}

}  // namespace meshwright
