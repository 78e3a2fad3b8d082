// SPDX-License-Identifier: Apache-2.0
#include "kernels/position/position.h"
#include "kernels/simd.h"

namespace meshwright::kernels {

MW_SIMD_CLONES
void add_positions(
    float* x, const float* table, std::int64_t tokens, std::int64_t cols, PositionRows rows) {
  for (std::int64_t token = 0; token < tokens; ++token) {
    const float* in = table + (rows.offset + (rows.first + token) % rows.seq_len) * cols;
    float* out = x + token * cols;
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) out[j] += in[j];
  }
}

MW_SIMD_CLONES
void positions_backward(const float* dx,
                        float* dtable_accum,
                        std::int64_t tokens,
                        std::int64_t cols,
                        PositionRows rows) {
  for (std::int64_t token = 0; token < tokens; ++token) {
    const float* in = dx + token * cols;
    float* out = dtable_accum + (rows.offset + (rows.first + token) % rows.seq_len) * cols;
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) out[j] += in[j];
  }
}

}  // namespace meshwright::kernels
