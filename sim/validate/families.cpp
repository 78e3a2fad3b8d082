// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/families.h"

namespace meshwright {

std::vector<ValidatedRow> validate_collectives(const CsvTable& table);

const std::vector<ValidationFamily>& validation_families() {
  static const std::vector<ValidationFamily> kFamilies{
      {"collectives", {"op", "ngpus", "bytes", "time_us"}, validate_collectives},
  };
  return kFamilies;
}

}  // namespace meshwright
