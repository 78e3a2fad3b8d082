// Root-mean-square normalisation (Zhang and Sennrich 2019), as Llama uses it before each block.
//
//   y[j] = x[j] * rstd * w[j],    rstd = 1 / sqrt(mean(x^2) + eps)
//   dx[j] = rstd * (dy[j] w[j] - x[j] * rstd^2 * mean(dy w x))
//   dw[j] = sum over rows of dy[j] * x[j] * rstd
//
// The backward adds to dx because in a residual network the skip connection's gradient is already
// there. Thread-safe for disjoint outputs; allocates nothing.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// x, y [rows, cols]; weight [cols]; rstd [rows] is written for the backward pass. y may be x.
void rmsnorm_forward(const float* x,
                     const float* weight,
                     float* y,
                     float* rstd,
                     std::int64_t rows,
                     std::int64_t cols,
                     float eps);

/// dy, x, dx_accum [rows, cols]; weight, dweight_accum [cols]; rstd [rows] as the forward wrote it.
/// dx_accum += dL/dx and dweight_accum += dL/dweight. The outputs must not overlap the inputs.
void rmsnorm_backward(const float* dy,
                      const float* x,
                      const float* weight,
                      const float* rstd,
                      float* dx_accum,
                      float* dweight_accum,
                      std::int64_t rows,
                      std::int64_t cols);

}  // namespace meshwright::kernels
