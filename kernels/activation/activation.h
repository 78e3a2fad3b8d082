// Activations of a feed-forward without a gate: ReLU (OPT), and GELU (Hendrycks and Gimpel 2016) in
// the tanh form that GPT-2 was trained with:
//
//   gelu(x) = x s(2 u),   u = sqrt(2/pi) (x + 0.044715 x^3),   0.5 (1 + tanh u) = s(2 u)
//
// with s the sigmoid. Only x is saved.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// act[i] = gelu(x[i]); must not overlap x.
void gelu_forward(const float* x, float* act, std::int64_t n);
/// Overwrites x with its gradient.
void gelu_backward(float* x_inout, const float* dact, std::int64_t n);

/// act[i] = max(x[i], 0).
void relu_forward(const float* x, float* act, std::int64_t n);
/// Overwrites x with its gradient, which is 0 at 0.
void relu_backward(float* x_inout, const float* dact, std::int64_t n);

}  // namespace meshwright::kernels
