// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/families.h"

namespace meshwright {

const std::vector<ValidationFamily>& validation_families() {
  static const std::vector<ValidationFamily> kFamilies{};
  return kFamilies;
}

}  // namespace meshwright
