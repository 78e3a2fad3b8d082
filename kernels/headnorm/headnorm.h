// Root-mean-square normalisation of each query and key head by itself, as Qwen3 does before it
// rotates them. All query heads share one weight [head_dim], all key heads another.
//
// Rows of qkv are q | k | v, of qk q | k.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

struct HeadCounts {
  std::int64_t queries = 0;
  std::int64_t keys = 0;  ///< And as many values.
  std::int64_t dim = 0;
};

/// qkv [tokens, (queries + 2 keys) dim] -> qk [tokens, (queries + keys) dim]; rstd [tokens,
/// queries + keys] is written for the backward pass.
void headnorm_forward(const float* qkv,
                      const float* query_weight,
                      const float* key_weight,
                      float* qk,
                      float* rstd,
                      std::int64_t tokens,
                      HeadCounts heads,
                      float eps);

/// Overwrites qkv with its gradient, of which the values' part is dv, and adds to the gradients of
/// the weights. dq [tokens, queries dim], dk and dv [tokens, keys dim].
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
                       HeadCounts heads);

}  // namespace meshwright::kernels
