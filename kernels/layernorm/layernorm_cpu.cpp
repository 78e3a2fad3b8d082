// SPDX-License-Identifier: Apache-2.0
// The variance is the mean square of what is left after the mean is taken off: E[x^2] - mean^2
// would lose the digits of a row that is far from zero.
#include <cmath>

#include "kernels/lane_sum.h"
#include "kernels/layernorm/layernorm.h"

namespace meshwright::kernels {

MW_SIMD_CLONES
void layernorm_forward(const float* x,
                       const float* weight,
                       const float* bias,
                       float* y,
                       float* mean,
                       float* rstd,
                       std::int64_t rows,
                       std::int64_t cols,
                       float eps) {
  const auto n = static_cast<double>(cols);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* xr = x + row * cols;
    float* yr = y + row * cols;
    const double m =
        lane_sum(cols, [xr](std::int64_t j) { return static_cast<double>(xr[j]); }) / n;
    const double squares = lane_sum(cols, [xr, m](std::int64_t j) {
      const double d = static_cast<double>(xr[j]) - m;
      return d * d;
    });
    const auto center = static_cast<float>(m);
    const auto r = static_cast<float>(1.0 / std::sqrt(squares / n + static_cast<double>(eps)));
    mean[row] = center;
    rstd[row] = r;
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) yr[j] = (xr[j] - center) * r * weight[j] + bias[j];
  }
}

MW_SIMD_CLONES
void layernorm_backward(const float* dy,
                        const float* x,
                        const float* weight,
                        const float* mean,
                        const float* rstd,
                        float* dx_accum,
                        float* dweight_accum,
                        float* dbias_accum,
                        std::int64_t rows,
                        std::int64_t cols) {
  const auto n = static_cast<double>(cols);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* xr = x + row * cols;
    const float* dyr = dy + row * cols;
    float* dxr = dx_accum + row * cols;
    const float m = mean[row];
    const float r = rstd[row];
    const double sum = lane_sum(cols, [=](std::int64_t j) {
      return static_cast<double>(dyr[j]) * static_cast<double>(weight[j]);
    });
    const double along = lane_sum(cols, [=](std::int64_t j) {
      return static_cast<double>(dyr[j]) * static_cast<double>(weight[j]) *
             (static_cast<double>(xr[j]) - static_cast<double>(m));
    });
    const auto mean_g = static_cast<float>(sum / n);
    const auto mean_gn = static_cast<float>(along * static_cast<double>(r) / n);
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) {
      const float normed = (xr[j] - m) * r;
      dxr[j] += r * (dyr[j] * weight[j] - mean_g - normed * mean_gn);
      dweight_accum[j] += dyr[j] * normed;
      dbias_accum[j] += dyr[j];
    }
  }
}

}  // namespace meshwright::kernels
