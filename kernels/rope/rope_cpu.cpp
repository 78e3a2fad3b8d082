// SPDX-License-Identifier: Apache-2.0
// Half-split pairs are two unit-stride streams, so a head is one plain vector loop without
// shuffles.
#include <cmath>
#include <cstring>

#include "kernels/rope/rope.h"
#include "kernels/simd.h"

namespace meshwright::kernels {
namespace {

/// out[0..2 half) = the rotation of in[0..2 half) by the angles of cos and sin [half]. out may be
/// in.
MW_ALWAYS_INLINE void rotate_head(
    const float* in, float* out, const float* cos, const float* sin, std::int64_t half) {
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float low = in[i];
    const float high = in[i + half];
    out[i] = low * cos[i] - high * sin[i];
    out[i + half] = high * cos[i] + low * sin[i];
  }
}

/// The same by the opposite angles.
MW_ALWAYS_INLINE void rotate_head_back(
    const float* in, float* out, const float* cos, const float* sin, std::int64_t half) {
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float low = in[i];
    const float high = in[i + half];
    out[i] = low * cos[i] + high * sin[i];
    out[i + half] = high * cos[i] - low * sin[i];
  }
}

}  // namespace

void rope_tables(
    float* cos, float* sin, std::int64_t seq_len, std::int64_t half, const double* frequencies) {
  for (std::int64_t i = 0; i < half; ++i) {
    for (std::int64_t position = 0; position < seq_len; ++position) {
      const double angle = static_cast<double>(position) * frequencies[i];
      cos[position * half + i] = static_cast<float>(std::cos(angle));
      sin[position * half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

MW_SIMD_CLONES
void rope_forward(float* x,
                  const float* cos,
                  const float* sin,
                  std::int64_t tokens,
                  std::int64_t seq_len,
                  std::int64_t num_heads,
                  std::int64_t head_dim,
                  std::int64_t row_size) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t angles = token % seq_len * half;
    for (std::int64_t head = 0; head < num_heads; ++head) {
      float* h = x + token * row_size + head * head_dim;
      rotate_head(h, h, cos + angles, sin + angles, half);
    }
  }
}

MW_SIMD_CLONES
void rope_backward(float* x,
                   const float* cos,
                   const float* sin,
                   std::int64_t tokens,
                   std::int64_t seq_len,
                   std::int64_t num_heads,
                   std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t angles = token % seq_len * half;
    for (std::int64_t head = 0; head < num_heads; ++head) {
      float* h = x + (token * num_heads + head) * head_dim;
      rotate_head_back(h, h, cos + angles, sin + angles, half);
    }
  }
}

MW_SIMD_CLONES
void rope_backward_pack(const float* dq,
                        const float* dk,
                        const float* dv,
                        float* dqkv,
                        const float* cos,
                        const float* sin,
                        std::int64_t tokens,
                        std::int64_t seq_len,
                        std::int64_t num_q_heads,
                        std::int64_t num_kv_heads,
                        std::int64_t head_dim) {
  const std::int64_t half = head_dim / 2;
  const std::int64_t q_size = num_q_heads * head_dim;
  const std::int64_t kv_size = num_kv_heads * head_dim;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t angles = token % seq_len * half;
    float* row = dqkv + token * (q_size + 2 * kv_size);
    for (std::int64_t at = 0; at < q_size; at += head_dim) {
      rotate_head_back(dq + token * q_size + at, row + at, cos + angles, sin + angles, half);
    }
    for (std::int64_t at = 0; at < kv_size; at += head_dim) {
      rotate_head_back(
          dk + token * kv_size + at, row + q_size + at, cos + angles, sin + angles, half);
    }
    std::memcpy(row + q_size + kv_size,
                dv + token * kv_size,
                static_cast<std::size_t>(kv_size) * sizeof(float));
  }
}

}  // namespace meshwright::kernels
