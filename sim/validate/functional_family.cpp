// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/functional_family.h"

#include "sim/validate/functional_case.h"
#include "sim/validate/step_rows.h"

namespace meshwright {

std::vector<ValidatedRow> predict_functional_rows(const CsvTable& table) {
  const Result<StepConstants> constants = StepConstants::builtin();
  MW_CHECK(constants.has_value(), to_string(constants.error()));
  std::vector<ValidatedRow> rows;
  for (size_t i = 0; i < table.num_rows(); ++i) {
    const TrainingCase c = functional_case(table, i);
    rows.push_back(step_time_row(c, table.line(i), *constants));
    const StepMemory memory =
        c.skipped.empty() ? last_stage_memory(c.problem, c.states, c.layout) : StepMemory{};
    if (c.measured_memory_gib) rows.push_back(step_memory_row(c, table.line(i), memory));
  }
  return rows;
}

}  // namespace meshwright
