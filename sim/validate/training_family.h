// The family of published training steps: time (and, where printed, peak memory) per row.
#pragma once

#include <vector>

#include "sim/validate/validation.h"

namespace meshwright {

[[nodiscard]] std::vector<ValidatedRow> predict_training_rows(const CsvTable& table);

}  // namespace meshwright
