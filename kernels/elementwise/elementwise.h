// The small passes between the large operators: residual sums, scaling, biases, and the norm for
// clipping.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// y [n] += x [n]. y may be x.
void add_inplace(float* y, const float* x, std::int64_t n);

/// y [n] *= scale.
void scale_inplace(float* y, float scale, std::int64_t n);

/// y [rows, cols] += bias [cols], the same for each row.
void add_bias(float* y, const float* bias, std::int64_t rows, std::int64_t cols);

/// dbias_accum [cols] += the sum over rows of dy [rows, cols], in row order.
void bias_backward(const float* dy, float* dbias_accum, std::int64_t rows, std::int64_t cols);

/// Sum of x[i]^2 over x [n], in double and in the fixed order of kernels/lane_sum.h. NaN if an
/// element is.
[[nodiscard]] double sum_of_squares(const float* x, std::int64_t n);

}  // namespace meshwright::kernels
