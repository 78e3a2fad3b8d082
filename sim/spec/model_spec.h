// ModelSpec: the architecture of one decoder-only transformer, as its Hugging Face config states
// it.
//
// Reads: a built-in (models/llm/*.json) or the user's config.json. Feeds:
// sim/spec/logical_tensors.h (the one source of parameter counts) and sim/graph (operators).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/result.h"

namespace meshwright {

/// Naming families: how a Hugging Face checkpoint calls the tensors. What a family computes is in
/// the fields of ModelSpec, so that nothing downstream switches on the family.
enum class ModelFamily : uint8_t {
  kLlama,
  kMistral,
  kQwen2,
  kQwen3,
  kGpt2,
  kOpt,
  kGemma2,
  kPhi3,
  kMixtral,
  kQwen3Moe,
  kDeepseekV3,
};

/// The Hugging Face model_type.
[[nodiscard]] std::string_view to_string(ModelFamily family);

enum class NormKind : uint8_t { kRmsNorm, kLayerNorm };
enum class FfnKind : uint8_t { kSwiGlu, kGeGlu, kGelu, kRelu };  ///< The first two are gated.
enum class PositionKind : uint8_t { kRotary, kLearned };

/// Mixture of experts in place of the dense feed-forward.
struct MoeSpec {
  int64_t num_experts = 0;
  int64_t experts_per_token = 0;  ///< top-k of the router.
  int64_t d_ff_expert = 0;        ///< Width of one expert.
  int64_t d_ff_shared = 0;        ///< Width of all shared experts together; 0: none.
  int64_t num_dense_layers = 0;   ///< The first layers keep the dense feed-forward d_ff.
  bool shared_gate = false;       ///< A sigmoid gate [1, D] weighs the shared expert.
  bool router_bias = false;       ///< A correction per expert, that no gradient reaches.

  friend bool operator==(const MoeSpec&, const MoeSpec&) = default;
};

/// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434): low-rank query, key and value.
struct MlaSpec {
  int64_t q_lora_rank = 0;  ///< 0: the query is projected directly.
  int64_t kv_lora_rank = 0;
  int64_t qk_nope_head_dim = 0;
  int64_t qk_rope_head_dim = 0;
  int64_t v_head_dim = 0;

  friend bool operator==(const MlaSpec&, const MlaSpec&) = default;
};

/// A decoder-only transformer.
struct ModelSpec {
  std::string name;
  ModelFamily family = ModelFamily::kLlama;
  int64_t vocab_size = 0;
  int64_t d_model = 0;  ///< Hidden width D.
  int64_t d_ff = 0;     ///< Feed-forward width F.
  int64_t num_layers = 0;
  int64_t num_heads = 0;     ///< Query heads N.
  int64_t num_kv_heads = 0;  ///< Key/value heads; divides num_heads.
  int64_t head_dim = 0;      ///< Width of one head H; need not be D/N.
  int64_t max_seq_len = 0;   ///< max_position_embeddings.
  double rope_theta = 10000.0;
  /// Canonical JSON of the config's rope_scaling; empty: none. It stretches positions and costs
  /// nothing, so plans may have it.
  std::string rope_scaling;
  double norm_eps = 1e-5;
  bool tied_embeddings = false;
  bool qkv_bias = false;
  std::optional<int64_t>
      sliding_window;  ///< Attention sees only this many tokens; sequences beyond it are refused.
  NormKind norm = NormKind::kRmsNorm;  ///< LayerNorm has a bias.
  FfnKind ffn = FfnKind::kSwiGlu;
  PositionKind positions = PositionKind::kRotary;
  int64_t position_rows = 0;  ///< Rows of a learned position table.
  bool linear_bias = false;   ///< On every projection of a layer.
  bool qk_norm = false;       ///< RMSNorm over each query and key head.
  bool post_norms = false;    ///< Norms after attention and feed-forward too.
  int64_t window_every = 1;   ///< A sliding window on every such layer (Gemma 2: 2).
  double attention_softcap = 0;
  double logit_softcap = 0;
  double dropout = 0;            ///< Of the embedding and of each branch, while training.
  double attention_dropout = 0;  ///< Of the attention's weights.
  std::optional<MoeSpec> moe;
  std::optional<MlaSpec> mla;
  int64_t num_mtp_layers = 0;  ///< Multi-token-prediction layers after the last.

  [[nodiscard]] bool gated_ffn() const { return ffn == FfnKind::kSwiGlu || ffn == FfnKind::kGeGlu; }
  [[nodiscard]] bool is_moe_layer(int64_t layer) const {
    return moe && layer >= moe->num_dense_layers;
  }
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Blocks of the model: 0 the embedding, 1..num_layers the decoder layers, num_layers + 1 the head
/// (final norm, output projection, loss).
[[nodiscard]] int num_blocks(const ModelSpec& model);

/// A built-in name ("llama-3-70b"), a config.json, or a folder that holds one. A folder with
/// safetensors is checked against their headers (see safetensors_header.h).
/// Errors: unknown name (lists the known ones), unknown model_type, a setting that changes the
/// mathematics and is not supported (another activation, a pattern of layers), sizes that are
/// missing, zero, negative or do not divide.
[[nodiscard]] Result<ModelSpec> load_model(const std::string& name_or_path);

/// The text of a Hugging Face config.json. Keys that do not change the mathematics are ignored.
[[nodiscard]] Result<ModelSpec> parse_hf_config(std::string_view text,
                                                const std::string& origin,
                                                std::string name);

[[nodiscard]] std::vector<std::string> builtin_models();

}  // namespace meshwright
