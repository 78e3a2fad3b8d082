// SPDX-License-Identifier: Apache-2.0
// Seven streams of memory per element: one fused loop, because separate passes would pay the
// traffic each.
#include <cmath>

#include "kernels/adamw/adamw.h"
#include "kernels/simd.h"

namespace meshwright::kernels {

MW_SIMD_CLONES
void adamw(float* param,
           const float* grad,
           float* exp_avg,
           float* exp_avg_sq,
           std::int64_t n,
           const AdamWStep& step) {
  // Coefficients in double, rounded once: 1 - beta2^t loses most of its digits in float.
  const double t = static_cast<double>(step.step);
  const double correction1 = 1.0 - std::pow(step.beta1, t);
  const double correction2 = 1.0 - std::pow(step.beta2, t);
  const float grad_scale = static_cast<float>(step.grad_scale);
  const float decay = static_cast<float>(1.0 - step.learning_rate * step.weight_decay);
  const float one_minus_beta1 = static_cast<float>(1.0 - step.beta1);
  const float beta2 = static_cast<float>(step.beta2);
  const float one_minus_beta2 = static_cast<float>(1.0 - step.beta2);
  const float step_size = static_cast<float>(step.learning_rate / correction1);
  const float root_correction2 = static_cast<float>(std::sqrt(correction2));
  const float eps = static_cast<float>(step.eps);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = grad[i] * grad_scale;
    const float m = exp_avg[i] + one_minus_beta1 * (g - exp_avg[i]);
    const float v = beta2 * exp_avg_sq[i] + one_minus_beta2 * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    param[i] = param[i] * decay - step_size * (m / (std::sqrt(v) / root_correction2 + eps));
  }
}

}  // namespace meshwright::kernels
