// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/hf_config_json.h"

namespace meshwright {
namespace {

using HfJson = nlohmann::json;

HfJson gpt2_json(const ModelSpec& m) {
  return {{"n_embd", m.d_model},
          {"n_layer", m.num_layers},
          {"n_head", m.num_heads},
          {"n_inner", m.d_ff},
          {"n_positions", m.position_rows},
          {"layer_norm_epsilon", m.norm_eps},
          {"resid_pdrop", m.dropout},
          {"embd_pdrop", m.dropout},
          {"attn_pdrop", m.attention_dropout}};
}

HfJson opt_json(const ModelSpec& m) {
  return {{"hidden_size", m.d_model},
          {"num_hidden_layers", m.num_layers},
          {"num_attention_heads", m.num_heads},
          {"ffn_dim", m.d_ff},
          {"max_position_embeddings", m.max_seq_len},
          {"dropout", m.dropout},
          {"attention_dropout", m.attention_dropout}};
}

void put_experts(HfJson& json, const ModelSpec& m) {
  const MoeSpec& e = *m.moe;
  json["num_experts_per_tok"] = e.experts_per_token;
  switch (m.family) {
    case ModelFamily::kMixtral:
      json["num_local_experts"] = e.num_experts;
      break;
    case ModelFamily::kDeepseekV3:
      json["n_routed_experts"] = e.num_experts;
      json["moe_intermediate_size"] = e.d_ff_expert;
      json["n_shared_experts"] = e.d_ff_shared / e.d_ff_expert;
      json["first_k_dense_replace"] = e.num_dense_layers;
      json["topk_method"] = e.router_bias ? "noaux_tc" : "greedy";
      json["num_nextn_predict_layers"] = m.num_mtp_layers;
      break;
    default:
      json["num_experts"] = e.num_experts;
      json["moe_intermediate_size"] = e.d_ff_expert;
  }
}

HfJson rotary_json(const ModelSpec& m) {
  HfJson json = {{"hidden_size", m.d_model},
                 {"intermediate_size", m.d_ff},
                 {"num_hidden_layers", m.num_layers},
                 {"num_attention_heads", m.num_heads},
                 {"num_key_value_heads", m.num_kv_heads},
                 {"max_position_embeddings", m.max_seq_len},
                 {"rope_theta", m.rope_theta},
                 {"rms_norm_eps", m.norm_eps}};
  if (!m.rope_scaling.empty()) json["rope_scaling"] = HfJson::parse(m.rope_scaling);
  if (m.mla) {
    json["q_lora_rank"] = m.mla->q_lora_rank > 0 ? HfJson(m.mla->q_lora_rank) : HfJson(nullptr);
    json["kv_lora_rank"] = m.mla->kv_lora_rank;
    json["qk_nope_head_dim"] = m.mla->qk_nope_head_dim;
    json["qk_rope_head_dim"] = m.mla->qk_rope_head_dim;
    json["v_head_dim"] = m.mla->v_head_dim;
  } else {
    json["head_dim"] = m.head_dim;
  }
  if (m.moe) put_experts(json, m);
  if (m.family == ModelFamily::kGemma2) {
    json["attn_logit_softcapping"] = m.attention_softcap;
    json["final_logit_softcapping"] = m.logit_softcap;
  }
  if (m.sliding_window) {
    json["sliding_window"] = *m.sliding_window;
    json["use_sliding_window"] = true;
  }
  return json;
}

}  // namespace

nlohmann::json hf_config_json(const ModelSpec& m) {
  HfJson json = m.family == ModelFamily::kGpt2  ? gpt2_json(m)
                : m.family == ModelFamily::kOpt ? opt_json(m)
                                                : rotary_json(m);
  json["model_type"] = to_string(m.family);
  json["vocab_size"] = m.vocab_size;
  json["tie_word_embeddings"] = m.tied_embeddings;
  return json;
}

}  // namespace meshwright
