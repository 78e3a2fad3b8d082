// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/executor_support.h"

namespace meshwright {
namespace {

/// What of the model the worker's operators do not cover; empty when they cover it.
std::string_view uncovered(const ModelSpec& m) {
  if (m.moe) return "experts";
  if (m.mla) return "multi-head latent attention";
  if (m.norm != NormKind::kRmsNorm) return "LayerNorm";
  if (m.ffn != FfnKind::kSwiGlu) return "a feed-forward other than SwiGLU";
  if (m.positions != PositionKind::kRotary) return "learned positions";
  if (m.linear_bias) return "a bias on every projection";
  if (m.qk_norm) return "a norm over query and key heads";
  if (m.post_norms) return "norms after attention and feed-forward";
  if (m.attention_softcap > 0 || m.logit_softcap > 0) return "soft-capped scores";
  if (m.dropout > 0) return "dropout";
  if (!m.rope_scaling.empty()) return "rope_scaling";
  return {};
}

}  // namespace

std::optional<Error> executor_refuses(const Plan& plan) {
  if (!plan.cluster().is_local()) {
    return Error{.where = "/cluster",
                 .field = "cluster",
                 .value = plan.cluster().name,
                 .rule = "the worker runs on CPU ranks only",
                 .remedy = "plan with --cluster " + std::to_string(plan.world_size()) + "xlocal"};
  }
  if (const std::string_view part = uncovered(plan.model()); !part.empty()) {
    return Error{
        .where = "/model",
        .field = "model",
        .value = plan.model().name,
        .rule = "has " + std::string(part) + ", which the worker does not run",
        .remedy = "train a llama, mistral or qwen2 model, or plan this one for a GPU cluster"};
  }
  if (!plan.layout().flash_attention) {
    return Error{.where = "/layout/flash_attention",
                 .field = "flash_attention",
                 .value = "off",
                 .rule = "the worker has fused attention only",
                 .remedy = "use flash_attention=on"};
  }
  return std::nullopt;
}

}  // namespace meshwright
