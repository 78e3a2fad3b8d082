// Layer normalisation (Ba, Kiros and Hinton 2016), as GPT-2 and OPT use it before each block.
//
//   y[j] = (x[j] - mean) * rstd * w[j] + b[j],    rstd = 1 / sqrt(variance(x) + eps)
//   dx[j] = rstd * (g[j] - mean(g) - n[j] * mean(g n)),  g = dy w,  n[j] = (x[j] - mean) * rstd
//   dw[j] = sum over rows of dy[j] * n[j],    db[j] = sum over rows of dy[j]
//
// The backward adds to dx because in a residual network the skip connection's gradient is already
// there. Thread-safe for disjoint outputs; allocates nothing.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// x, y [rows, cols]; weight, bias [cols]; mean, rstd [rows] are written for the backward pass. y
/// may be x.
void layernorm_forward(const float* x,
                       const float* weight,
                       const float* bias,
                       float* y,
                       float* mean,
                       float* rstd,
                       std::int64_t rows,
                       std::int64_t cols,
                       float eps);

/// dy, x, dx_accum [rows, cols]; weight, dweight_accum, dbias_accum [cols]; mean, rstd [rows] as
/// the forward wrote them. Adds to the three outputs, which must not overlap the inputs.
void layernorm_backward(const float* dy,
                        const float* x,
                        const float* weight,
                        const float* mean,
                        const float* rstd,
                        float* dx_accum,
                        float* dweight_accum,
                        float* dbias_accum,
                        std::int64_t rows,
                        std::int64_t cols);

}  // namespace meshwright::kernels
