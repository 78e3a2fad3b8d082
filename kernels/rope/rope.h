// Rotary position embedding (Su et al. 2021) in Hugging Face's half-split form (rotate_half):
// element i of a head pairs with element i + head_dim/2, and the pair turns by position times its
// frequency.
//
//   y[i]        = x[i] cos - x[i + half] sin
//   y[i + half] = x[i + half] cos + x[i] sin
//
// The backward is the rotation by the opposite angle, so nothing is saved. Angles are computed in
// double; a peer that computes them in float differs by about position * 6e-8 radians.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// cos, sin [seq_len, half]; frequencies [half] in radians per token.
void rope_tables(
    float* cos, float* sin, std::int64_t seq_len, std::int64_t half, const double* frequencies);

/// Rotates the first num_heads heads of each row of x [tokens, row_size] in place. The position of
/// a token is token % seq_len. cos, sin as rope_tables wrote them.
void rope_forward(float* x,
                  const float* cos,
                  const float* sin,
                  std::int64_t tokens,
                  std::int64_t seq_len,
                  std::int64_t num_heads,
                  std::int64_t head_dim,
                  std::int64_t row_size);

/// Rotates all heads of x [tokens, num_heads * head_dim] back, in place.
void rope_backward(float* x,
                   const float* cos,
                   const float* sin,
                   std::int64_t tokens,
                   std::int64_t seq_len,
                   std::int64_t num_heads,
                   std::int64_t head_dim);

/// Rotates dq [tokens, num_q_heads * head_dim] and dk [tokens, num_kv_heads * head_dim] back and
/// packs them with dv (shape of dk) into dqkv [tokens, (num_q_heads + 2 num_kv_heads) * head_dim].
/// Attention's backward gives three buffers and the merged linear wants one: the copy is paid here.
/// dqkv overlaps no input.
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
                        std::int64_t head_dim);

}  // namespace meshwright::kernels
