// SPDX-License-Identifier: Apache-2.0
// Loops at memory speed; `omp simd` spares them the overlap checks that a compiler would add.
#include "kernels/elementwise/elementwise.h"
#include "kernels/lane_sum.h"

namespace meshwright::kernels {

MW_SIMD_CLONES
void add_inplace(float* y, const float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

MW_SIMD_CLONES
void scale_inplace(float* y, float scale, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] *= scale;
}

MW_SIMD_CLONES
void add_bias(float* y, const float* bias, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* yr = y + row * cols;
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) yr[j] += bias[j];
  }
}

MW_SIMD_CLONES
void bias_backward(const float* dy, float* dbias_accum, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* dyr = dy + row * cols;
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) dbias_accum[j] += dyr[j];
  }
}

MW_SIMD_CLONES
double sum_of_squares(const float* x, std::int64_t n) {
  return lane_sum(
      n, [x](std::int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}

}  // namespace meshwright::kernels
