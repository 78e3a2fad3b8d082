// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "kernels/headnorm/headnorm.h"
#include "kernels/lane_sum.h"
#include "kernels/rmsnorm/rmsnorm.h"

namespace meshwright::kernels {
namespace {

/// x becomes its own gradient, where y = x rstd w.
MW_ALWAYS_INLINE void head_backward(
    const float* dy, const float* w, float r, float* x, float* dw, std::int64_t dim) {
  const double sum = lane_sum(dim, [=](std::int64_t j) {
    return static_cast<double>(dy[j]) * static_cast<double>(w[j]) * static_cast<double>(x[j]);
  });
  const auto rd = static_cast<double>(r);
  const auto along_x = static_cast<float>(sum * rd * rd * rd / static_cast<double>(dim));
#pragma omp simd
  for (std::int64_t j = 0; j < dim; ++j) {
    const float v = x[j];
    dw[j] += dy[j] * v * r;
    x[j] = dy[j] * w[j] * r - v * along_x;
  }
}

}  // namespace

void headnorm_forward(const float* qkv,
                      const float* query_weight,
                      const float* key_weight,
                      float* qk,
                      float* rstd,
                      std::int64_t tokens,
                      HeadCounts heads,
                      float eps) {
  const std::int64_t normed = heads.queries + heads.keys;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const float* in = qkv + token * (normed + heads.keys) * heads.dim;
    float* out = qk + token * normed * heads.dim;
    float* r = rstd + token * normed;
    rmsnorm_forward(in, query_weight, out, r, heads.queries, heads.dim, eps);
    const std::int64_t q = heads.queries * heads.dim;
    rmsnorm_forward(in + q, key_weight, out + q, r + heads.queries, heads.keys, heads.dim, eps);
  }
}

MW_SIMD_CLONES
void headnorm_backward(const float* dq,
                       const float* dk,
                       const float* dv,
                       const float* rstd,
                       const float* query_weight,
                       const float* key_weight,
                       float* qkv_inout,
                       float* dquery_weight_accum,
                       float* dkey_weight_accum,
                       std::int64_t tokens,
                       HeadCounts heads) {
  const std::int64_t normed = heads.queries + heads.keys;
  const std::int64_t q_size = heads.queries * heads.dim;
  const std::int64_t kv_size = heads.keys * heads.dim;
  for (std::int64_t token = 0; token < tokens; ++token) {
    float* row = qkv_inout + token * (normed + heads.keys) * heads.dim;
    const float* r = rstd + token * normed;
    for (std::int64_t h = 0; h < heads.queries; ++h) {
      head_backward(dq + token * q_size + h * heads.dim,
                    query_weight,
                    r[h],
                    row + h * heads.dim,
                    dquery_weight_accum,
                    heads.dim);
    }
    for (std::int64_t h = 0; h < heads.keys; ++h) {
      head_backward(dk + token * kv_size + h * heads.dim,
                    key_weight,
                    r[heads.queries + h],
                    row + q_size + h * heads.dim,
                    dkey_weight_accum,
                    heads.dim);
    }
    std::memcpy(row + q_size + kv_size,
                dv + token * kv_size,
                static_cast<std::size_t>(kv_size) * sizeof(float));
  }
}

}  // namespace meshwright::kernels
