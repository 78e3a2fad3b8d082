// One step of training as validated rows: its time, and its peak memory.
#pragma once

#include "sim/validate/training_case.h"
#include "sim/validate/validation.h"

namespace meshwright {

[[nodiscard]] ValidatedRow step_time_row(const TrainingCase& c,
                                         int64_t line,
                                         const StepConstants& constants);

/// bound_high is what a plan leaves room for, so that it holds for 95 of 100; bound_low the same
/// factor below. Frameworks that do not report their allocator are read off the device.
/// `memory` is not read where the case is skipped.
[[nodiscard]] ValidatedRow step_memory_row(const TrainingCase& c,
                                           int64_t line,
                                           const StepMemory& memory);

}  // namespace meshwright
