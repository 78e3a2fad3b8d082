// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/families.h"

#include "sim/validate/attention_table.h"
#include "sim/validate/gemm_table.h"
#include "sim/validate/operator_family.h"

namespace meshwright {

const std::vector<ValidationFamily>& validation_families() {
  static const std::vector<ValidationFamily> kFamilies{
      {"attention", kAttentionColumns, predict_attention, predict_attention_with},
      {"gemm", kGemmColumns, predict_gemm, predict_gemm_with},
  };
  return kFamilies;
}

}  // namespace meshwright
