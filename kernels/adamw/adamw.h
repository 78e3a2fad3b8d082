// AdamW (Loshchilov and Hutter 2019) with PyTorch's order of operations, over one flat buffer.
//
//   g = grad_scale * grad;   p *= 1 - lr * wd
//   m += (1 - beta1) (g - m);   v = beta2 v + (1 - beta2) g^2
//   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
//
// grad_scale carries gradient clipping and averaging, which then cost no pass of their own. Every
// operation is exactly rounded in a fixed order, so replicas that see equal gradients stay equal
// bit by bit on any ISA.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// What one update needs besides the tensors. The defaults of the betas and eps are PyTorch's.
struct AdamWStep {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  std::int64_t step = 1;    ///< Counts updates from 1, this one included.
  double grad_scale = 1.0;  ///< Multiplies the gradient before use.
};

/// param, grad, exp_avg, exp_avg_sq [n], no two overlapping; all but grad are updated.
void adamw(float* param,
           const float* grad,
           float* exp_avg,
           float* exp_avg_sq,
           std::int64_t n,
           const AdamWStep& step);

}  // namespace meshwright::kernels
