// SPDX-License-Identifier: Apache-2.0
// Reads a Hugging Face config.json into a ModelSpec.
//
// Foreign keys are ignored, except those that change the mathematics: unsupported ones are errors,
// because a plan for another function than the user's is worse than none.
#include <fmt/format.h>

#include <algorithm>

#include "sim/core/json_reader.h"
#include "sim/spec/model_spec.h"

namespace meshwright {
namespace {

// Far above any model, and low enough that a parameter count stays within int64.
constexpr Range kVocabulary{1, 1e8};
constexpr Range kWidth{1, 1e6};
constexpr Range kFew{1, 1e4};
constexpr Range kTokens{1, 1e9};

constexpr ModelFamily kFamilies[] = {ModelFamily::kLlama,
                                     ModelFamily::kMistral,
                                     ModelFamily::kQwen2,
                                     ModelFamily::kQwen3,
                                     ModelFamily::kGpt2,
                                     ModelFamily::kOpt,
                                     ModelFamily::kGemma2,
                                     ModelFamily::kPhi3,
                                     ModelFamily::kMixtral,
                                     ModelFamily::kQwen3Moe,
                                     ModelFamily::kDeepseekV3};

/// Reads one config; each family takes the sizes by its own key names and refuses the settings that
/// would change what it computes.
class ConfigReader {
 public:
  ConfigReader(const Json& config, const std::string& origin, std::string name)
      : config_(config), r_(config, origin) {
    m_.name = std::move(name);
  }

  Result<ModelSpec> read() {
    MW_RETURN_IF_ERROR(r_.finish(false));
    read_family();
    MW_RETURN_IF_ERROR(r_.finish(false));
    m_.vocab_size = r_.integer("vocab_size", kVocabulary);
    switch (m_.family) {
      case ModelFamily::kGpt2:
        gpt2();
        break;
      case ModelFamily::kOpt:
        opt();
        break;
      default:
        rotary_family();
    }
    MW_RETURN_IF_ERROR(r_.finish(false));
    return std::move(m_);
  }

 private:
  void read_family() {
    const std::string type = r_.text("model_type");
    std::vector<std::string> known;
    for (const ModelFamily f : kFamilies) {
      known.emplace_back(to_string(f));
      if (type != to_string(f)) continue;
      m_.family = f;
      return;
    }
    r_.fail("model_type", '"' + type + '"', "is not a known model type", "known: " + join(known));
  }

  // GPT-2: learned positions, LayerNorm, biases, GELU of width 4 D, tied.
  void gpt2() {
    sizes("n_embd", "n_layer", "n_head");
    m_.d_ff = r_.has("n_inner") ? r_.integer("n_inner", kWidth) : 4 * m_.d_model;
    m_.num_kv_heads = m_.num_heads;
    m_.max_seq_len = r_.integer_or("n_positions", 1024, kTokens);
    m_.position_rows = m_.max_seq_len;
    m_.norm_eps = r_.number_or("layer_norm_epsilon", 1e-5, {1e-12, 1.0});
    m_.tied_embeddings = r_.boolean_or("tie_word_embeddings", true);
    m_.dropout = r_.number_or("resid_pdrop", 0.1, {0, 0.99});
    m_.attention_dropout = r_.number_or("attn_pdrop", 0.1, {0, 0.99});
    require("embd_pdrop", m_.dropout);
    learned_position_family(FfnKind::kGelu);
    head_width("n_embd", "n_head");
    require("activation_function", "gelu_new");
    require("scale_attn_by_inverse_layer_idx", false);
    require("add_cross_attention", false);
  }

  // OPT: as GPT-2 with ReLU; its position table begins with two rows that are never read.
  void opt() {
    sizes("hidden_size", "num_hidden_layers", "num_attention_heads");
    m_.d_ff = r_.integer("ffn_dim", kWidth);
    m_.num_kv_heads = m_.num_heads;
    m_.max_seq_len = r_.integer_or("max_position_embeddings", 2048, kTokens);
    m_.position_rows = m_.max_seq_len + 2;
    m_.tied_embeddings = r_.boolean_or("tie_word_embeddings", true);
    m_.dropout = r_.number_or("dropout", 0.1, {0, 0.99});
    m_.attention_dropout = r_.number_or("attention_dropout", 0.0, {0, 0.99});
    learned_position_family(FfnKind::kRelu);
    head_width("hidden_size", "num_attention_heads");
    require("activation_function", "relu");
    require("word_embed_proj_dim", m_.d_model);
    require("do_layer_norm_before", true);
    require("_remove_final_layer_norm", false);
    require("enable_bias", true);
    require("layer_norm_elementwise_affine", true);
  }

  void learned_position_family(FfnKind ffn) {
    m_.norm = NormKind::kLayerNorm;
    m_.ffn = ffn;
    m_.positions = PositionKind::kLearned;
    m_.linear_bias = true;
  }

  void rotary_family() {
    sizes("hidden_size", "num_hidden_layers", "num_attention_heads");
    m_.d_ff = r_.integer("intermediate_size", kWidth);
    const int64_t default_kv =
        m_.family == ModelFamily::kMistral || m_.family == ModelFamily::kMixtral
            ? std::min<int64_t>(8, m_.num_heads)
            : m_.num_heads;
    m_.num_kv_heads = r_.integer_or("num_key_value_heads", default_kv, kFew);
    m_.max_seq_len = r_.integer_or("max_position_embeddings", 2048, kTokens);
    m_.norm_eps = r_.number_or("rms_norm_eps", 1e-6, {1e-12, 1.0});
    m_.rope_theta = r_.number_or("rope_theta", 10000.0, {1.0, 1e12});
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      if (r_.has(key) && !r_.object(key).empty()) m_.rope_scaling = r_.object(key).dump();
    }
    const bool gemma = m_.family == ModelFamily::kGemma2;
    m_.tied_embeddings = r_.boolean_or("tie_word_embeddings", gemma);
    m_.qkv_bias = m_.family == ModelFamily::kQwen2;
    m_.qk_norm = m_.family == ModelFamily::kQwen3 || m_.family == ModelFamily::kQwen3Moe;
    if (m_.family == ModelFamily::kDeepseekV3) {
      latent_attention();
    } else {
      head_width("hidden_size", "num_attention_heads");
    }
    rotary_head();
    if (gemma) gemma2();
    if (m_.family == ModelFamily::kMixtral) mixtral();
    if (m_.family == ModelFamily::kQwen3Moe) qwen3_moe();
    if (m_.family == ModelFamily::kDeepseekV3) deepseek_v3();
    const char* activation = gemma ? "gelu_pytorch_tanh" : "silu";
    require("hidden_act", activation);
    require("hidden_activation", activation);
    require("mlp_bias", false);
    require("attention_bias", false);
    require("attention_dropout", 0.0);
    require("resid_pdrop", 0.0);
    require("embd_pdrop", 0.0);
    require("pretraining_tp", 1);
    require("partial_rotary_factor", 1.0);
    const bool qwen = m_.family == ModelFamily::kQwen2 || m_.family == ModelFamily::kQwen3 ||
                      m_.family == ModelFamily::kQwen3Moe;
    const bool window_in_use = !qwen || r_.boolean_or("use_sliding_window", false);
    if (window_in_use && r_.has("sliding_window")) {
      m_.sliding_window = r_.integer("sliding_window", kTokens);
    }
  }

  void gemma2() {
    m_.ffn = FfnKind::kGeGlu;
    m_.post_norms = true;
    m_.window_every = 2;
    m_.attention_softcap = r_.number_or("attn_logit_softcapping", 50.0, {0, 1e6});
    m_.logit_softcap = r_.number_or("final_logit_softcapping", 30.0, {0, 1e6});
  }

  void mixtral() {
    m_.moe = MoeSpec{.num_experts = r_.integer("num_local_experts", kFew),
                     .experts_per_token = r_.integer("num_experts_per_tok", kFew),
                     .d_ff_expert = m_.d_ff};
    experts_fit("num_experts_per_tok");
  }

  void qwen3_moe() {
    m_.moe = MoeSpec{.num_experts = r_.integer("num_experts", kFew),
                     .experts_per_token = r_.integer("num_experts_per_tok", kFew),
                     .d_ff_expert = r_.integer("moe_intermediate_size", kWidth)};
    require("decoder_sparse_step", 1);
    require("mlp_only_layers", Json::array());
    experts_fit("num_experts_per_tok");
  }

  void deepseek_v3() {
    const int64_t width = r_.integer("moe_intermediate_size", kWidth);
    m_.moe = MoeSpec{.num_experts = r_.integer("n_routed_experts", kFew),
                     .experts_per_token = r_.integer("num_experts_per_tok", kFew),
                     .d_ff_expert = width,
                     .d_ff_shared = width * r_.integer_or("n_shared_experts", 0, {0, 1e4}),
                     .num_dense_layers = r_.integer_or("first_k_dense_replace", 0, {0, 1e4}),
                     .router_bias = r_.text_or("topk_method", "noaux_tc") == "noaux_tc"};
    m_.num_mtp_layers = r_.integer_or("num_nextn_predict_layers", 0, {0, 16});
    require("moe_layer_freq", 1);
    experts_fit("num_experts_per_tok");
  }

  void latent_attention() {
    m_.mla = MlaSpec{.q_lora_rank = r_.has("q_lora_rank") ? r_.integer("q_lora_rank", kWidth) : 0,
                     .kv_lora_rank = r_.integer("kv_lora_rank", kWidth),
                     .qk_nope_head_dim = r_.integer("qk_nope_head_dim", kFew),
                     .qk_rope_head_dim = r_.integer("qk_rope_head_dim", kFew),
                     .v_head_dim = r_.integer("v_head_dim", kFew)};
    m_.head_dim = m_.mla->qk_nope_head_dim + m_.mla->qk_rope_head_dim;
  }

  void experts_fit(const char* key) {
    if (m_.moe->experts_per_token <= m_.moe->num_experts) return;
    r_.fail(key,
            std::to_string(m_.moe->experts_per_token),
            fmt::format("must not exceed the number of experts ({})", m_.moe->num_experts));
  }

  void sizes(const char* width, const char* layers, const char* heads) {
    m_.d_model = r_.integer(width, kWidth);
    m_.num_layers = r_.integer(layers, kFew);
    m_.num_heads = r_.integer(heads, kFew);
  }

  void head_width(const char* width_key, const char* heads_key) {
    if (!r_.finish(false)) return;
    if (r_.has("head_dim")) {
      m_.head_dim = r_.integer("head_dim", kFew);
    } else if (m_.d_model % m_.num_heads != 0) {
      r_.fail(
          width_key,
          std::to_string(m_.d_model),
          fmt::format(
              "must be a multiple of {} ({}) when head_dim is not given", heads_key, m_.num_heads));
    } else {
      m_.head_dim = m_.d_model / m_.num_heads;
    }
  }

  void rotary_head() {
    if (!r_.finish(false)) return;
    if (m_.num_heads % m_.num_kv_heads != 0) {
      r_.fail("num_key_value_heads",
              std::to_string(m_.num_kv_heads),
              fmt::format("must divide num_attention_heads ({})", m_.num_heads));
    }
    if (m_.head_dim % 2 != 0) {
      r_.fail(
          "head_dim", std::to_string(m_.head_dim), "must be even: rotary embedding turns pairs");
    }
  }

  void require(const char* key, const Json& expected) {
    const auto it = config_.find(key);
    if (it == config_.end() || it->is_null() || *it == expected) return;
    r_.fail(key,
            it->dump(),
            "changes the mathematics and is not supported",
            fmt::format("only {} is", expected.dump()));
  }

  const Json& config_;
  ObjectReader r_;
  ModelSpec m_;
};

}  // namespace

Result<ModelSpec> parse_hf_config(std::string_view text,
                                  const std::string& origin,
                                  std::string name) {
  MW_ASSIGN_OR_RETURN(const Json config, parse_json(text, origin));
  return ConfigReader(config, origin, std::move(name)).read();
}

}  // namespace meshwright
