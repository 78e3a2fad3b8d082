// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/families.h"

#include "sim/validate/attention_table.h"
#include "sim/validate/collectives_family.h"
#include "sim/validate/functional_family.h"
#include "sim/validate/gemm_table.h"
#include "sim/validate/operator_family.h"
#include "sim/validate/training_family.h"

namespace meshwright {

const std::vector<ValidationFamily>& validation_families() {
  static const std::vector<ValidationFamily> kFamilies{
      {"training",
       {"id", "source", "model", "gpu_norm", "num_gpus", "global_batch", "measured_step_s"},
       predict_training_rows},
      {"megatron functional tests",
       {"case", "L", "h", "mbs", "gbs", "tp", "pp", "mem", "it"},
       predict_functional_rows},
      {"collectives", {"op", "ngpus", "bytes", "time_us"}, validate_collectives},
      {"attention", kAttentionColumns, predict_attention, predict_attention_with},
      {"gemm", kGemmColumns, predict_gemm, predict_gemm_with},
  };
  return kFamilies;
}

}  // namespace meshwright
