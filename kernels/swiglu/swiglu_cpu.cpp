// SPDX-License-Identifier: Apache-2.0
// The sigmoid is computed anew in the backward: with a vector exp the loop stays close to memory
// speed.
#include "kernels/exp.h"
#include "kernels/swiglu/swiglu.h"

namespace meshwright::kernels {

MW_SIMD_CLONES
void swiglu_forward(const float* gate_up, float* act, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* gate = gate_up + row * 2 * cols;
    const float* up = gate + cols;
    float* out = act + row * cols;
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) out[j] = gate[j] * fast_sigmoid(gate[j]) * up[j];
  }
}

MW_SIMD_CLONES
void swiglu_backward(float* gate_up_inout,
                     const float* dact,
                     std::int64_t rows,
                     std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* gate = gate_up_inout + row * 2 * cols;
    float* up = gate + cols;
    const float* da = dact + row * cols;
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) {
      const float g = gate[j];
      const float s = fast_sigmoid(g);
      gate[j] = da[j] * up[j] * s * (1.0F + g * (1.0F - s));
      up[j] = da[j] * g * s;
    }
  }
}

}  // namespace meshwright::kernels
