// ModelShape: a model as kinds of blocks with counts, which is all that time and memory of a step
// depend on.
//
// Reads: a ModelSpec, or a published architecture (which may mix attention, Mamba and
// expert blocks, as Nemotron-H does). Feeds: sim/step. Parameter counts follow Megatron-LM's and
// Hugging Face's layouts; biases and norms are counted, because the sizes in the literature are.
#pragma once

#include <array>
#include <cstdint>

#include "sim/spec/model_spec.h"

namespace meshwright {

/// Query, key and value widths. MLA: low ranks > 0 and dims per head that differ.
struct AttentionShape {
  double num_heads = 0;  ///< 0: the block has no attention.
  double num_kv_heads = 0;
  double head_dim = 0;  ///< Of query and key.
  double v_head_dim = 0;
  double q_lora_rank = 0;  ///< MLA (arXiv:2405.04434).
  double kv_lora_rank = 0;
  double rope_head_dim = 0;  ///< Part of head_dim that one key shares over heads (MLA).
  double window = 0;         ///< Tokens seen; 0: all before it.
};

/// Mamba-2 mixer (arXiv:2405.21060).
struct MambaShape {
  double inner = 0;  ///< heads x head dim; 0: the block has no Mamba mixer.
  double num_heads = 0;
  double groups = 0;
  double state = 0;
};

struct FfnShape {
  double width = 0;  ///< Dense width; with experts, the width of the shared experts. 0: none.
  double num_experts = 0;
  double top_k = 0;
  double expert_width = 0;
  double latent = 0;  ///< Experts work in this width (LatentMoE); 0: in the hidden width.
};

struct BlockShape {
  double count = 0;
  AttentionShape attention;
  MambaShape mamba;
  FfnShape ffn;
};

struct ModelShape {
  static constexpr int kMaxKinds = 4;
  double hidden = 0;
  double vocab = 0;
  double position_rows = 0;  ///< Of a learned table.
  bool tied_embeddings = false;
  bool gated_ffn = false;
  bool bias = false;         ///< On linears and norms (GPT).
  bool qkv_bias = false;     ///< On query, key and value alone (Qwen2).
  bool qk_norm = false;      ///< A norm over each query and key head (Qwen3).
  bool post_norms = false;   ///< Norms after the mixers too (Gemma 2).
  bool router_bias = false;  ///< One correction per expert (DeepSeek-V3).
  bool shared_gate = false;  ///< A gate on the shared experts (Qwen2-MoE).
  double dropout = 0;
  double mtp_layers = 0;  ///< Multi-token prediction: a layer of the last kind plus a head each.
  int num_kinds = 0;
  std::array<BlockShape, kMaxKinds> kinds{};

  [[nodiscard]] double num_layers() const {
    double n = 0;
    for (int i = 0; i < num_kinds; ++i) n += kinds[static_cast<size_t>(i)].count;
    return n;
  }
  BlockShape& add(const BlockShape& block);
};

[[nodiscard]] ModelShape model_shape(const ModelSpec& model);

/// Parameters of one block: those that every rank of the expert group holds, and the routed
/// experts'.
[[nodiscard]] double dense_parameters(const ModelShape& model, const BlockShape& block);
[[nodiscard]] double expert_parameters(const ModelShape& model, const BlockShape& block);
[[nodiscard]] double embedding_parameters(const ModelShape& model);
[[nodiscard]] double final_norm_parameters(const ModelShape& model);
/// What one of `tp` tensor-parallel ranks holds of a block's dense parameters, and of the
/// embedding. Norms, position tables, routers, MLA's down-projections and the biases of
/// row-parallel matmuls are whole on each rank; key and value heads shrink until a rank has one.
[[nodiscard]] double dense_parameters_of_rank(const ModelShape& model,
                                              const BlockShape& block,
                                              double tp);
[[nodiscard]] double embedding_parameters_of_rank(const ModelShape& model, double tp);
/// Every parameter once; a tied head is the embedding.
[[nodiscard]] double total_parameters(const ModelShape& model);
/// Parameters that one token meets: of the routed experts only the top-k.
[[nodiscard]] double active_parameters(const ModelShape& model);

/// Model FLOPs of one step over `batch` sequences: forward x 3, recompute not counted
/// (arXiv:2104.04473 equation 3 when `causal` is false and f = 4 h).
[[nodiscard]] double model_flops(const ModelShape& model, double batch, double seq, bool causal);

}  // namespace meshwright
