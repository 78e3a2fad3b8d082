// TensorNames: how a model family's Hugging Face checkpoint calls its parameters.
#pragma once

#include <string>

#include "sim/spec/model_spec.h"

namespace meshwright {

/// How a family's checkpoint calls a layer's parameters. Empty: the family has no such tensor.
struct TensorNames {
  std::string embedding = "model.embed_tokens.weight";
  std::string positions = "model.embed_positions.weight";
  std::string layer = "model.layers.{}.";
  std::string attn_norm = "input_layernorm";
  std::string query = "self_attn.q_proj", key = "self_attn.k_proj", value = "self_attn.v_proj";
  std::string attn_out = "self_attn.o_proj";
  std::string ffn_norm = "post_attention_layernorm";
  std::string gate = "mlp.gate_proj", up = "mlp.up_proj", down = "mlp.down_proj";
  std::string post_attn_norm, post_ffn_norm;
  std::string router = "mlp.gate";
  std::string expert_gate = "mlp.experts.*.gate_proj", expert_up = "mlp.experts.*.up_proj",
              expert_down = "mlp.experts.*.down_proj";
  std::string shared = "mlp.shared_experts.";
  std::string final_norm = "model.norm";
  bool transposed = false;
};

[[nodiscard]] TensorNames tensor_names(ModelFamily family);

/// "attn.c_attn#q" + ".weight" -> "attn.c_attn.weight#q".
[[nodiscard]] std::string with_suffix(const std::string& name, const char* suffix);

}  // namespace meshwright
