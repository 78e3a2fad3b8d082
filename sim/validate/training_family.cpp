// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/training_family.h"

#include <cmath>

#include "sim/step/training_case.h"

namespace meshwright {

std::vector<ValidatedRow> predict_training_rows(const CsvTable& table) {
  const Result<StepConstants> constants = StepConstants::builtin();
  MW_CHECK(constants.has_value(), to_string(constants.error()));
  std::vector<ValidatedRow> rows;
  for (size_t i = 0; i < table.num_rows(); ++i) {
    const TrainingCase c = training_case(table, i);
    ValidatedRow row{.line = table.line(i),
                     .id = c.id,
                     .source = c.source,
                     .device = c.device,
                     .unit = "s",
                     .measured = c.measured_s,
                     .skipped = c.skipped,
                     .rank_group = c.rank_group};
    if (c.skipped.empty()) row.predicted = predict_case(c, *constants).total_s();
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace meshwright
