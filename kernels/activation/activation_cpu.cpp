// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.h"
#include "kernels/exp.h"

namespace meshwright::kernels {
namespace {

constexpr float kTwoRootTwoOverPi = 1.5957691216057308F;
constexpr float kCubic = 0.044715F;

}  // namespace

MW_SIMD_CLONES
void gelu_forward(const float* x, float* act, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    act[i] = v * fast_sigmoid(kTwoRootTwoOverPi * (v + kCubic * v * v * v));
  }
}

MW_SIMD_CLONES
void gelu_backward(float* x_inout, const float* dact, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x_inout[i];
    const float s = fast_sigmoid(kTwoRootTwoOverPi * (v + kCubic * v * v * v));
    const float slope = kTwoRootTwoOverPi * (1.0F + 3.0F * kCubic * v * v);
    x_inout[i] = dact[i] * (s + v * s * (1.0F - s) * slope);
  }
}

MW_SIMD_CLONES
void relu_forward(const float* x, float* act, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) act[i] = x[i] > 0.0F ? x[i] : 0.0F;
}

MW_SIMD_CLONES
void relu_backward(float* x_inout, const float* dact, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) x_inout[i] = x_inout[i] > 0.0F ? dact[i] : 0.0F;
}

}  // namespace meshwright::kernels
