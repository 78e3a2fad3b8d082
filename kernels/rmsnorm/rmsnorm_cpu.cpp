// SPDX-License-Identifier: Apache-2.0
// Two sweeps over each row, a sum and then an update: the second one finds the row in the L1 cache,
// so memory is read once.
#include <cmath>

#include "kernels/lane_sum.h"
#include "kernels/rmsnorm/rmsnorm.h"

namespace meshwright::kernels {

MW_SIMD_CLONES
void rmsnorm_forward(const float* x,
                     const float* weight,
                     float* y,
                     float* rstd,
                     std::int64_t rows,
                     std::int64_t cols,
                     float eps) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* xr = x + row * cols;
    float* yr = y + row * cols;
    const double sum = lane_sum(cols, [xr](std::int64_t j) {
      return static_cast<double>(xr[j]) * static_cast<double>(xr[j]);
    });
    const double mean = sum / static_cast<double>(cols);
    const float r = static_cast<float>(1.0 / std::sqrt(mean + static_cast<double>(eps)));
    rstd[row] = r;
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) yr[j] = xr[j] * r * weight[j];
  }
}

MW_SIMD_CLONES
void rmsnorm_backward(const float* dy,
                      const float* x,
                      const float* weight,
                      const float* rstd,
                      float* dx_accum,
                      float* dweight_accum,
                      std::int64_t rows,
                      std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* xr = x + row * cols;
    const float* dyr = dy + row * cols;
    float* dxr = dx_accum + row * cols;
    const float r = rstd[row];
    const double sum = lane_sum(cols, [=](std::int64_t j) {
      return static_cast<double>(dyr[j]) * static_cast<double>(weight[j]) *
             static_cast<double>(xr[j]);
    });
    const double rd = static_cast<double>(r);
    const float along_x = static_cast<float>(sum * rd * rd * rd / static_cast<double>(cols));
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) {
      dxr[j] += dyr[j] * weight[j] * r - xr[j] * along_x;
      dweight_accum[j] += dyr[j] * xr[j] * r;
    }
  }
}

}  // namespace meshwright::kernels
