// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/tensor_names.h"

namespace meshwright {

TensorNames tensor_names(ModelFamily family) {
  TensorNames n;
  switch (family) {
    case ModelFamily::kGpt2:
      n.embedding = "transformer.wte.weight";
      n.positions = "transformer.wpe.weight";
      n.layer = "transformer.h.{}.";
      n.attn_norm = "ln_1";
      n.query = "attn.c_attn#q";
      n.key = "attn.c_attn#k";
      n.value = "attn.c_attn#v";
      n.attn_out = "attn.c_proj";
      n.ffn_norm = "ln_2";
      n.up = "mlp.c_fc";
      n.down = "mlp.c_proj";
      n.final_norm = "transformer.ln_f";
      n.transposed = true;
      break;
    case ModelFamily::kOpt:
      n.embedding = "model.decoder.embed_tokens.weight";
      n.positions = "model.decoder.embed_positions.weight";
      n.layer = "model.decoder.layers.{}.";
      n.attn_norm = "self_attn_layer_norm";
      n.attn_out = "self_attn.out_proj";
      n.ffn_norm = "final_layer_norm";
      n.up = "fc1";
      n.down = "fc2";
      n.final_norm = "model.decoder.final_layer_norm";
      break;
    case ModelFamily::kGemma2:
      n.ffn_norm = "pre_feedforward_layernorm";
      n.post_attn_norm = "post_attention_layernorm";
      n.post_ffn_norm = "post_feedforward_layernorm";
      break;
    case ModelFamily::kPhi3:
      n.query = "self_attn.qkv_proj#q";
      n.key = "self_attn.qkv_proj#k";
      n.value = "self_attn.qkv_proj#v";
      n.gate = "mlp.gate_up_proj#gate";
      n.up = "mlp.gate_up_proj#up";
      break;
    case ModelFamily::kMixtral:
      n.router = "block_sparse_moe.gate";
      n.expert_gate = "block_sparse_moe.experts.*.w1";
      n.expert_up = "block_sparse_moe.experts.*.w3";
      n.expert_down = "block_sparse_moe.experts.*.w2";
      break;
    default:
      break;
  }
  return n;
}

std::string with_suffix(const std::string& name, const char* suffix) {
  const size_t part = name.find('#');
  if (part == std::string::npos) return name + suffix;
  return name.substr(0, part) + suffix + name.substr(part);
}

}  // namespace meshwright
