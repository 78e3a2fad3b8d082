// ModelSpec: the architecture of one decoder-only transformer, as its Hugging Face config states
// it.
//
// Reads: a built-in (models/llm/*.json) or the user's config.json. Feeds: the logical tensor list
// below, which is the one source of parameter counts, and sim/graph (operators).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/result.h"

namespace meshwright {

/// Families that differ in parameters: Qwen2 adds a bias to q, k and v.
enum class ModelFamily { kLlama, kMistral, kQwen2 };

/// A decoder of RMSNorm, rotary grouped-query attention and SwiGLU.
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
  double norm_eps = 1e-5;
  bool tied_embeddings = false;
  bool qkv_bias = false;
  std::optional<int64_t>
      sliding_window;  ///< Attention sees only this many tokens; sequences beyond it are refused.

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Which block of the model a tensor belongs to: 0 the embedding, 1..num_layers the decoder layers,
/// num_layers + 1 the head (final norm, output projection, loss).
[[nodiscard]] int num_blocks(const ModelSpec& model);

/// What a parameter does in its block.
enum class ParamRole : uint8_t {
  kEmbedding,  ///< [V, D]
  kAttnNorm,   ///< [D]
  kQuery,      ///< [N*H, D]
  kKey,        ///< [K*H, D]
  kValue,      ///< [K*H, D]
  kQueryBias,  ///< [N*H]
  kKeyBias,    ///< [K*H]
  kValueBias,  ///< [K*H]
  kAttnOut,    ///< [D, N*H]
  kFfnNorm,    ///< [D]
  kGate,       ///< [F, D]
  kUp,         ///< [F, D]
  kDown,       ///< [D, F]
  kFinalNorm,  ///< [D]
  kLmHead,     ///< [V, D]
};

/// One parameter of the model, whole: its Hugging Face name, shape and block.
struct LogicalTensor {
  std::string name;
  std::vector<int64_t> shape;  ///< One or two dims.
  int block = 0;
  ParamRole role = ParamRole::kEmbedding;
  [[nodiscard]] int64_t numel() const;
};

/// Every parameter once, in block order. A tied output projection is not listed: it is the
/// embedding.
[[nodiscard]] std::vector<LogicalTensor> logical_tensors(const ModelSpec& model);

/// Sum over logical_tensors(): tied weights counted once.
[[nodiscard]] int64_t parameter_count(const ModelSpec& model);

/// A built-in name ("llama-3-70b"), a config.json, or a folder that holds one.
/// Errors: unknown name (lists the known ones), unknown model_type, a setting that changes the
/// mathematics and is not supported (rope_scaling, another activation), sizes that are missing,
/// zero, negative or do not divide.
[[nodiscard]] Result<ModelSpec> load_model(const std::string& name_or_path);

/// The text of a Hugging Face config.json. Keys that do not change the mathematics are ignored.
[[nodiscard]] Result<ModelSpec> parse_hf_config(std::string_view text,
                                                const std::string& origin,
                                                std::string name);

[[nodiscard]] std::vector<std::string> builtin_models();

}  // namespace meshwright
