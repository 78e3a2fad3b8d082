// The parameters of a model, whole: names, shapes, and what each does.
//
// Reads: a ModelSpec. Feeds: parameter counts, sim/schedule/placement (who holds what), and the
// check of a checkpoint's header. Names are the Hugging Face checkpoint's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/spec/model_spec.h"

namespace meshwright {

/// What a parameter does in its block. D width, N/K query and key/value heads, H head width, F
/// feed-forward width, E experts.
enum class ParamRole : uint8_t {
  kEmbedding,         ///< [V, D]
  kPosition,          ///< [rows, D]
  kAttnNorm,          ///< [D]
  kAttnNormBias,      ///< [D]
  kQuery,             ///< [N*H, D]
  kKey,               ///< [K*H, D]
  kValue,             ///< [K*H, D]
  kQueryBias,         ///< [N*H]
  kKeyBias,           ///< [K*H]
  kValueBias,         ///< [K*H]
  kQueryNorm,         ///< [H], shared by the heads
  kKeyNorm,           ///< [H]
  kQueryDown,         ///< [R_q, D]: low-rank query (MLA)
  kQueryDownNorm,     ///< [R_q]
  kQueryUp,           ///< [N*(H_nope + H_rope), R_q]
  kKvDown,            ///< [R_kv + H_rope, D]
  kKvDownNorm,        ///< [R_kv]
  kKvUp,              ///< [N*(H_nope + H_v), R_kv]
  kAttnOut,           ///< [D, N*H]
  kAttnOutBias,       ///< [D]
  kPostAttnNorm,      ///< [D]
  kFfnNorm,           ///< [D]
  kFfnNormBias,       ///< [D]
  kGate,              ///< [F, D]
  kUp,                ///< [F, D]
  kUpBias,            ///< [F]
  kDown,              ///< [D, F]
  kDownBias,          ///< [D]
  kPostFfnNorm,       ///< [D]
  kRouter,            ///< [E, D]
  kRouterBias,        ///< [E]; no gradient reaches it
  kExpertGate,        ///< [E, F_e, D]
  kExpertUp,          ///< [E, F_e, D]
  kExpertDown,        ///< [E, D, F_e]
  kSharedGate,        ///< [F_s, D]
  kSharedUp,          ///< [F_s, D]
  kSharedDown,        ///< [D, F_s]
  kSharedExpertGate,  ///< [1, D]
  kFinalNorm,         ///< [D]
  kFinalNormBias,     ///< [D]
  kLmHead,            ///< [V, D]
  kMtpNorm,           ///< [D]
  kMtpProjection,     ///< [D, 2D]
};

[[nodiscard]] bool is_norm(ParamRole role);    ///< Weight or bias of a norm.
[[nodiscard]] bool is_bias(ParamRole role);    ///< Of a projection.
[[nodiscard]] bool is_expert(ParamRole role);  ///< Has a leading dim of experts.

/// Half of a low-rank adapter (sim/spec/lora.h); kNone: a parameter of the model itself.
enum class AdapterHalf : uint8_t { kNone, kDown, kUp };

/// One parameter of the model.
struct LogicalTensor {
  /// The checkpoint's name. "*" stands for the expert index 0..E-1, one stored tensor each; "#part"
  /// ends the name of one of several parts that are stored as one tensor, their rows in list order.
  std::string name;
  std::vector<int64_t> shape;  ///< One to three dims, output features first.
  int block = 0;               ///< See num_blocks().
  ParamRole role = ParamRole::kEmbedding;
  bool stored_transposed = false;  ///< GPT-2 keeps [in, out].
  AdapterHalf adapter = AdapterHalf::kNone;
  [[nodiscard]] int64_t numel() const;
};

/// Every parameter once, in block order. A tied output projection is not listed: it is the
/// embedding. Multi-token-prediction layers are not listed: see mtp_parameter_count().
[[nodiscard]] std::vector<LogicalTensor> logical_tensors(const ModelSpec& model);

/// Parameters of one part of the model.
struct LedgerEntry {
  std::string part;  ///< "embedding", "layer 0", ..., "head".
  int64_t attention = 0;
  int64_t feed_forward = 0;  ///< Dense, shared and router.
  int64_t experts = 0;
  int64_t norms = 0;
  int64_t other = 0;  ///< Tables and the output projection.
  [[nodiscard]] int64_t total() const { return attention + feed_forward + experts + norms + other; }
};
/// One entry per block, in order.
[[nodiscard]] std::vector<LedgerEntry> parameter_ledger(const ModelSpec& model);

/// Sum over logical_tensors(): tied weights counted once.
[[nodiscard]] int64_t parameter_count(const ModelSpec& model);

/// Parameters that one token meets: of the routed experts only the top-k.
[[nodiscard]] int64_t active_parameter_count(const ModelSpec& model);

/// Parameters of the multi-token-prediction layers beyond the model they share embedding and head
/// with (DeepSeek-V3, arXiv:2412.19437 section 2.2).
[[nodiscard]] int64_t mtp_parameter_count(const ModelSpec& model);

}  // namespace meshwright
