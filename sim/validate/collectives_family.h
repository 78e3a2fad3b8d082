// The family of collectives: one operation on a group, from the constants of its link generation.
#pragma once

#include <vector>

#include "sim/validate/validation.h"

namespace meshwright {

[[nodiscard]] std::vector<ValidatedRow> validate_collectives(const CsvTable& table);

}  // namespace meshwright
