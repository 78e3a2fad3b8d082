// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/operator.h"

namespace meshwright {

std::string_view to_string(OpKind kind) {
  static constexpr std::string_view kNames[] = {"load_ids",
                                                "load_labels",
                                                "embedding",
                                                "embedding_backward",
                                                "zero",
                                                "rmsnorm",
                                                "rmsnorm_backward",
                                                "linear",
                                                "linear_backward_input",
                                                "linear_backward_weight",
                                                "add_bias",
                                                "bias_backward",
                                                "rope",
                                                "rope_backward",
                                                "attention",
                                                "attention_backward",
                                                "swiglu",
                                                "swiglu_backward",
                                                "add",
                                                "logit_max",
                                                "logit_sum",
                                                "cross_entropy",
                                                "position",
                                                "position_backward",
                                                "layernorm",
                                                "layernorm_backward",
                                                "head_norm",
                                                "head_norm_backward",
                                                "geglu",
                                                "geglu_backward",
                                                "gelu",
                                                "gelu_backward",
                                                "relu",
                                                "relu_backward",
                                                "dropout",
                                                "dropout_backward",
                                                "softcap",
                                                "softcap_backward",
                                                "scores",
                                                "scores_backward",
                                                "softmax",
                                                "softmax_backward",
                                                "weighted_values",
                                                "weighted_values_backward",
                                                "latent_keys",
                                                "latent_keys_backward",
                                                "router",
                                                "router_backward",
                                                "permute",
                                                "permute_backward",
                                                "unpermute",
                                                "unpermute_backward",
                                                "all_reduce",
                                                "all_reduce_max",
                                                "all_gather",
                                                "reduce_scatter",
                                                "all_to_all",
                                                "ring_kv"};
  return kNames[static_cast<int>(kind)];
}

int64_t BufferSpec::bytes() const {
  int64_t n = size_of(dtype);
  for (const int64_t d : shape) n *= d;
  return n;
}

}  // namespace meshwright
