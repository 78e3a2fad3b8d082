// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/training_family.h"

#include <set>

#include "sim/validate/step_rows.h"
#include "sim/validate/training_case.h"

namespace meshwright {
std::vector<ValidatedRow> predict_training_rows(const CsvTable& table) {
  const Result<StepConstants> constants = StepConstants::builtin();
  MW_CHECK(constants.has_value(), to_string(constants.error()));
  std::vector<ValidatedRow> rows;
  std::set<std::string> layouts;
  for (size_t i = 0; i < table.num_rows(); ++i) {
    const TrainingCase c = training_case(table, i);
    rows.push_back(step_time_row(c, table.line(i), *constants));
    // Repeats and later releases of one layout are no choice between layouts: the first stands for
    // them.
    if (c.skipped.empty() && layouts.insert(c.layout_key).second) {
      rows.back().rank_group = c.rank_group;
    }
    if (!c.measured_memory_gib) continue;
    const StepMemory memory =
        c.skipped.empty() ? peak_memory(c.problem, c.states, c.layout) : StepMemory{};
    rows.push_back(step_memory_row(c, table.line(i), memory));
  }
  return rows;
}

}  // namespace meshwright
