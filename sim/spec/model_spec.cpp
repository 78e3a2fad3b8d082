// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/model_spec.h"

#include <fmt/format.h>

#include <numeric>

namespace meshwright {

std::string_view to_string(ModelFamily family) {
  switch (family) {
    case ModelFamily::kLlama:
      return "llama";
    case ModelFamily::kMistral:
      return "mistral";
    case ModelFamily::kQwen2:
      return "qwen2";
    case ModelFamily::kQwen3:
      return "qwen3";
    case ModelFamily::kGpt2:
      return "gpt2";
    case ModelFamily::kOpt:
      return "opt";
    case ModelFamily::kGemma2:
      return "gemma2";
    case ModelFamily::kPhi3:
      return "phi3";
    case ModelFamily::kMixtral:
      return "mixtral";
    case ModelFamily::kQwen3Moe:
      return "qwen3_moe";
    case ModelFamily::kDeepseekV3:
      return "deepseek_v3";
  }
  return "";
}

int num_blocks(const ModelSpec& model) { return static_cast<int>(model.num_layers) + 2; }

int64_t LogicalTensor::numel() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<LogicalTensor> logical_tensors(const ModelSpec& m) {
  std::vector<LogicalTensor> out;
  const int64_t q = m.num_heads * m.head_dim;
  const int64_t kv = m.num_kv_heads * m.head_dim;
  out.push_back({"model.embed_tokens.weight", {m.vocab_size, m.d_model}, 0, ParamRole::kEmbedding});
  for (int64_t layer = 0; layer < m.num_layers; ++layer) {
    const int block = static_cast<int>(layer) + 1;
    auto add = [&](const char* suffix, std::vector<int64_t> shape, ParamRole role) {
      out.push_back(
          {fmt::format("model.layers.{}.{}", layer, suffix), std::move(shape), block, role});
    };
    add("input_layernorm.weight", {m.d_model}, ParamRole::kAttnNorm);
    add("self_attn.q_proj.weight", {q, m.d_model}, ParamRole::kQuery);
    add("self_attn.k_proj.weight", {kv, m.d_model}, ParamRole::kKey);
    add("self_attn.v_proj.weight", {kv, m.d_model}, ParamRole::kValue);
    if (m.qkv_bias) {
      add("self_attn.q_proj.bias", {q}, ParamRole::kQueryBias);
      add("self_attn.k_proj.bias", {kv}, ParamRole::kKeyBias);
      add("self_attn.v_proj.bias", {kv}, ParamRole::kValueBias);
    }
    add("self_attn.o_proj.weight", {m.d_model, q}, ParamRole::kAttnOut);
    add("post_attention_layernorm.weight", {m.d_model}, ParamRole::kFfnNorm);
    add("mlp.gate_proj.weight", {m.d_ff, m.d_model}, ParamRole::kGate);
    add("mlp.up_proj.weight", {m.d_ff, m.d_model}, ParamRole::kUp);
    add("mlp.down_proj.weight", {m.d_model, m.d_ff}, ParamRole::kDown);
  }
  const int head = num_blocks(m) - 1;
  out.push_back({"model.norm.weight", {m.d_model}, head, ParamRole::kFinalNorm});
  if (!m.tied_embeddings) {
    out.push_back({"lm_head.weight", {m.vocab_size, m.d_model}, head, ParamRole::kLmHead});
  }
  return out;
}

int64_t parameter_count(const ModelSpec& model) {
  int64_t total = 0;
  for (const LogicalTensor& t : logical_tensors(model)) total += t.numel();
  return total;
}

}  // namespace meshwright
