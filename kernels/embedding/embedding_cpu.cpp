// SPDX-License-Identifier: Apache-2.0
// A gather and a scatter-add; rows are long enough that a token costs one vector loop.
#include <algorithm>

#include "kernels/embedding/embedding.h"
#include "kernels/simd.h"

namespace meshwright::kernels {

void embedding_forward(const float* table,
                       const std::int64_t* ids,
                       std::int64_t vocab_begin,
                       std::int64_t vocab_rows,
                       float* out,
                       std::int64_t tokens,
                       std::int64_t cols) {
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t row = ids[token] - vocab_begin;
    float* to = out + token * cols;
    if (row >= 0 && row < vocab_rows) {
      std::copy_n(table + row * cols, cols, to);
    } else {
      std::fill_n(to, cols, 0.0F);
    }
  }
}

MW_SIMD_CLONES
void embedding_backward(const float* dout,
                        const std::int64_t* ids,
                        std::int64_t vocab_begin,
                        std::int64_t vocab_rows,
                        float* dtable_accum,
                        std::int64_t tokens,
                        std::int64_t cols) {
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t row = ids[token] - vocab_begin;
    if (row < 0 || row >= vocab_rows) continue;
    const float* from = dout + token * cols;
    float* to = dtable_accum + row * cols;
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) to[j] += from[j];
  }
}

}  // namespace meshwright::kernels
