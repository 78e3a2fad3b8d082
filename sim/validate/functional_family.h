// The family of Megatron-LM's functional tests: time and peak memory of the last rank per row.
#pragma once

#include <vector>

#include "sim/validate/validation.h"

namespace meshwright {

[[nodiscard]] std::vector<ValidatedRow> predict_functional_rows(const CsvTable& table);

}  // namespace meshwright
