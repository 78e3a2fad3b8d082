// Bytes that each parameter costs in its states, by number formats.
//
// Reads: a Layout. Feeds: resident memory, and the payloads of gradient reduction and parameter
// gathering. BF16 with FP32 gradients and moments is Megatron-LM's 18 bytes (6 + 12/d under
// ZeRO-1), with BF16 gradients DeepSpeed's and FSDP's 16; FP32 throughout is 16.
#pragma once

#include "sim/mesh/layout.h"

namespace meshwright {

struct StateBytes {
  double weight = 0;
  double gradient = 0;
  double optimizer = 0;  ///< Moments, and the FP32 master copy where weights are not FP32.
};

[[nodiscard]] constexpr StateBytes state_bytes(const Layout& l) {
  const double moment = l.moments == MomentFormat::kFp32   ? 4
                        : l.moments == MomentFormat::kBf16 ? 2
                                                           : 1;
  const bool fp32 = l.precision == Precision::kFp32;
  return {.weight = fp32 ? 4.0 : 2.0,
          .gradient = l.gradients == GradientFormat::kFp32 ? 4.0 : 2.0,
          .optimizer = (fp32 ? 0.0 : 4.0) + 2 * moment};
}

}  // namespace meshwright
