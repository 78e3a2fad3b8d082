// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/step_rows.h"

#include "sim/core/units.h"

namespace meshwright {
ValidatedRow step_time_row(const TrainingCase& c, int64_t line, const StepConstants& constants) {
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

ValidatedRow step_memory_row(const TrainingCase& c, int64_t line, const StepMemory& memory) {
  ValidatedRow row{.line = line,
                   .id = c.id + " memory",
                   .source = c.source + " memory",
                   .device = c.device,
                   .unit = c.memory_unit,
                   .measured = c.measured_memory_gib,
                   .skipped = c.skipped};
  if (!c.skipped.empty()) return row;
  const bool off_device =
      c.states == StateConvention::kDeepSpeed || c.states == StateConvention::kDeepSpeedBf16;
  const double allocated = memory.allocated_bytes();
  const double bytes = off_device ? device_memory(allocated) : allocated;
  row.predicted = bytes / kBytesPerGiB;
  row.bound_high = memory_upper_bound(bytes) / kBytesPerGiB;
  return row;
}

}  // namespace meshwright
