// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/logical_tensors.h"

#include <fmt/format.h>

#include <numeric>

#include "sim/spec/tensor_names.h"

namespace meshwright {
namespace {

class TensorLister {
 public:
  explicit TensorLister(const ModelSpec& m) : m_(m), names_(tensor_names(m.family)) {}

  std::vector<LogicalTensor> list() {
    add_raw(names_.embedding, {m_.vocab_size, m_.d_model}, ParamRole::kEmbedding);
    if (m_.positions == PositionKind::kLearned) {
      add_raw(names_.positions, {m_.position_rows, m_.d_model}, ParamRole::kPosition);
    }
    for (int64_t layer = 0; layer < m_.num_layers; ++layer) decoder_layer(layer);
    block_ = num_blocks(m_) - 1;
    prefix_.clear();
    norm(names_.final_norm, ParamRole::kFinalNorm, ParamRole::kFinalNormBias);
    if (!m_.tied_embeddings) {
      add_raw("lm_head.weight", {m_.vocab_size, m_.d_model}, ParamRole::kLmHead);
    }
    return std::move(out_);
  }

  std::vector<LogicalTensor> list_layer(int64_t layer) {
    decoder_layer(layer);
    return std::move(out_);
  }

 private:
  void decoder_layer(int64_t layer) {
    block_ = static_cast<int>(layer) + 1;
    prefix_ = fmt::format(fmt::runtime(names_.layer), layer);
    norm(names_.attn_norm, ParamRole::kAttnNorm, ParamRole::kAttnNormBias);
    if (m_.mla) {
      latent_attention(*m_.mla);
    } else {
      grouped_attention();
    }
    if (m_.post_norms) add(names_.post_attn_norm, {m_.d_model}, ParamRole::kPostAttnNorm);
    norm(names_.ffn_norm, ParamRole::kFfnNorm, ParamRole::kFfnNormBias);
    if (m_.is_moe_layer(layer)) {
      experts(*m_.moe);
    } else {
      dense_feed_forward();
    }
    if (m_.post_norms) add(names_.post_ffn_norm, {m_.d_model}, ParamRole::kPostFfnNorm);
  }

  void grouped_attention() {
    const int64_t q = m_.num_heads * m_.head_dim;
    const int64_t kv = m_.num_kv_heads * m_.head_dim;
    linear(names_.query, q, m_.d_model, ParamRole::kQuery);
    linear(names_.key, kv, m_.d_model, ParamRole::kKey);
    linear(names_.value, kv, m_.d_model, ParamRole::kValue);
    if (m_.qkv_bias || m_.linear_bias) {
      bias(names_.query, q, ParamRole::kQueryBias);
      bias(names_.key, kv, ParamRole::kKeyBias);
      bias(names_.value, kv, ParamRole::kValueBias);
    }
    if (m_.qk_norm) {
      add("self_attn.q_norm", {m_.head_dim}, ParamRole::kQueryNorm);
      add("self_attn.k_norm", {m_.head_dim}, ParamRole::kKeyNorm);
    }
    linear(names_.attn_out, m_.d_model, q, ParamRole::kAttnOut);
    if (m_.linear_bias) bias(names_.attn_out, m_.d_model, ParamRole::kAttnOutBias);
  }

  void latent_attention(const MlaSpec& a) {
    const int64_t q = m_.num_heads * (a.qk_nope_head_dim + a.qk_rope_head_dim);
    if (a.q_lora_rank > 0) {
      linear("self_attn.q_a_proj", a.q_lora_rank, m_.d_model, ParamRole::kQueryDown);
      add("self_attn.q_a_layernorm", {a.q_lora_rank}, ParamRole::kQueryDownNorm);
      linear("self_attn.q_b_proj", q, a.q_lora_rank, ParamRole::kQueryUp);
    } else {
      linear("self_attn.q_proj", q, m_.d_model, ParamRole::kQuery);
    }
    linear("self_attn.kv_a_proj_with_mqa",
           a.kv_lora_rank + a.qk_rope_head_dim,
           m_.d_model,
           ParamRole::kKvDown);
    add("self_attn.kv_a_layernorm", {a.kv_lora_rank}, ParamRole::kKvDownNorm);
    linear("self_attn.kv_b_proj",
           m_.num_heads * (a.qk_nope_head_dim + a.v_head_dim),
           a.kv_lora_rank,
           ParamRole::kKvUp);
    linear(names_.attn_out, m_.d_model, m_.num_heads * a.v_head_dim, ParamRole::kAttnOut);
  }

  void dense_feed_forward() {
    if (m_.gated_ffn()) linear(names_.gate, m_.d_ff, m_.d_model, ParamRole::kGate);
    linear(names_.up, m_.d_ff, m_.d_model, ParamRole::kUp);
    if (m_.linear_bias) bias(names_.up, m_.d_ff, ParamRole::kUpBias);
    linear(names_.down, m_.d_model, m_.d_ff, ParamRole::kDown);
    if (m_.linear_bias) bias(names_.down, m_.d_model, ParamRole::kDownBias);
  }

  void experts(const MoeSpec& e) {
    linear(names_.router, e.num_experts, m_.d_model, ParamRole::kRouter);
    if (e.router_bias) {
      add_raw(prefix_ + names_.router + ".e_score_correction_bias",
              {e.num_experts},
              ParamRole::kRouterBias);
    }
    add(names_.expert_gate, {e.num_experts, e.d_ff_expert, m_.d_model}, ParamRole::kExpertGate);
    add(names_.expert_up, {e.num_experts, e.d_ff_expert, m_.d_model}, ParamRole::kExpertUp);
    add(names_.expert_down, {e.num_experts, m_.d_model, e.d_ff_expert}, ParamRole::kExpertDown);
    if (e.d_ff_shared == 0) return;
    linear(names_.shared + "gate_proj", e.d_ff_shared, m_.d_model, ParamRole::kSharedGate);
    linear(names_.shared + "up_proj", e.d_ff_shared, m_.d_model, ParamRole::kSharedUp);
    linear(names_.shared + "down_proj", m_.d_model, e.d_ff_shared, ParamRole::kSharedDown);
    if (e.shared_gate) {
      linear("mlp.shared_expert_gate", 1, m_.d_model, ParamRole::kSharedExpertGate);
    }
  }

  void norm(const std::string& name, ParamRole weight_role, ParamRole bias_role) {
    add(name, {m_.d_model}, weight_role);
    if (m_.norm == NormKind::kLayerNorm) bias(name, m_.d_model, bias_role);
  }
  void linear(const std::string& name, int64_t rows, int64_t cols, ParamRole role) {
    add(name, {rows, cols}, role);
    out_.back().stored_transposed = names_.transposed;
  }
  void bias(const std::string& name, int64_t size, ParamRole role) {
    add_raw(prefix_ + with_suffix(name, ".bias"), {size}, role);
  }
  void add(const std::string& name, std::vector<int64_t> shape, ParamRole role) {
    add_raw(prefix_ + with_suffix(name, ".weight"), std::move(shape), role);
  }
  void add_raw(std::string name, std::vector<int64_t> shape, ParamRole role) {
    out_.push_back(
        {.name = std::move(name), .shape = std::move(shape), .block = block_, .role = role});
  }

  const ModelSpec& m_;
  TensorNames names_;
  std::string prefix_;
  int block_ = 0;
  std::vector<LogicalTensor> out_;
};

int64_t sum_of(const std::vector<LogicalTensor>& tensors) {
  int64_t total = 0;
  for (const LogicalTensor& t : tensors) total += t.numel();
  return total;
}

int64_t& column_of(LedgerEntry& entry, ParamRole role) {
  if (is_norm(role)) return entry.norms;
  if (is_expert(role)) return entry.experts;
  if (role == ParamRole::kEmbedding || role == ParamRole::kPosition || role == ParamRole::kLmHead ||
      role == ParamRole::kMtpProjection) {
    return entry.other;
  }
  return role < ParamRole::kPostAttnNorm ? entry.attention : entry.feed_forward;
}

}  // namespace

bool is_norm(ParamRole role) {
  switch (role) {
    case ParamRole::kAttnNorm:
    case ParamRole::kAttnNormBias:
    case ParamRole::kQueryNorm:
    case ParamRole::kKeyNorm:
    case ParamRole::kQueryDownNorm:
    case ParamRole::kKvDownNorm:
    case ParamRole::kPostAttnNorm:
    case ParamRole::kFfnNorm:
    case ParamRole::kFfnNormBias:
    case ParamRole::kPostFfnNorm:
    case ParamRole::kFinalNorm:
    case ParamRole::kFinalNormBias:
    case ParamRole::kMtpNorm:
      return true;
    default:
      return false;
  }
}

bool is_bias(ParamRole role) {
  switch (role) {
    case ParamRole::kQueryBias:
    case ParamRole::kKeyBias:
    case ParamRole::kValueBias:
    case ParamRole::kAttnOutBias:
    case ParamRole::kUpBias:
    case ParamRole::kDownBias:
    case ParamRole::kRouterBias:
      return true;
    default:
      return false;
  }
}

bool is_expert(ParamRole role) {
  return role == ParamRole::kExpertGate || role == ParamRole::kExpertUp ||
         role == ParamRole::kExpertDown;
}

int64_t LogicalTensor::numel() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<LogicalTensor> logical_tensors(const ModelSpec& model) {
  return TensorLister(model).list();
}

std::vector<LedgerEntry> parameter_ledger(const ModelSpec& model) {
  const int blocks = num_blocks(model);
  std::vector<LedgerEntry> ledger(static_cast<size_t>(blocks));
  for (int b = 0; b < blocks; ++b) {
    ledger[static_cast<size_t>(b)].part = b == 0            ? "embedding"
                                          : b == blocks - 1 ? "head"
                                                            : fmt::format("layer {}", b - 1);
  }
  for (const LogicalTensor& t : logical_tensors(model)) {
    column_of(ledger[static_cast<size_t>(t.block)], t.role) += t.numel();
  }
  return ledger;
}

int64_t parameter_count(const ModelSpec& model) { return sum_of(logical_tensors(model)); }

int64_t active_parameter_count(const ModelSpec& model) {
  int64_t total = 0;
  for (const LogicalTensor& t : logical_tensors(model)) {
    total += is_expert(t.role) ? t.numel() / model.moe->num_experts * model.moe->experts_per_token
                               : t.numel();
  }
  return total;
}

int64_t mtp_parameter_count(const ModelSpec& model) {
  if (model.num_mtp_layers == 0) return 0;
  const int64_t layer = sum_of(TensorLister(model).list_layer(model.num_layers - 1));
  // Two norms of the inputs, the projection of both to D, one decoder layer, its own final norm.
  return model.num_mtp_layers * (layer + 2 * model.d_model * model.d_model + 3 * model.d_model);
}

}  // namespace meshwright
