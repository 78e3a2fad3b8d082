// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/executor_support.h"

#include "sim/spec/rope_frequencies.h"

namespace meshwright {
namespace {

/// What of the model the worker's operators do not cover; empty when they cover it.
std::string_view uncovered(const ModelSpec& m) {
  if (m.moe) return "experts";
  if (m.mla) return "multi-head latent attention";
  if (m.ffn == FfnKind::kGeGlu) return "a GELU gate";
  if (m.post_norms) return "norms after attention and feed-forward";
  if (m.attention_softcap > 0 || m.logit_softcap > 0) return "soft-capped scores";
  if (m.attention_dropout > 0)
    return "dropout of attention weights (attn_pdrop, attention_dropout)";
  if (!rope_frequencies(m)) return "a rope_scaling other than linear and llama3";
  return {};
}

/// What of the layout the worker does not run.
struct Unsupported {
  const char* field;
  std::string value;
  const char* rule;
  const char* remedy;
};

std::optional<Unsupported> unsupported(const Plan& plan) {
  const Layout& l = plan.layout();
  if (l.cp > 1)
    return Unsupported{
        "cp", std::to_string(l.cp), "the worker runs no context parallelism", "use cp=1"};
  if (l.ep > 1)
    return Unsupported{"ep", std::to_string(l.ep), "the worker spreads no experts", "use ep=1"};
  if (l.reduce_bucket > 0)
    return Unsupported{"reduce_bucket",
                       std::to_string(l.reduce_bucket),
                       "the worker reduces each block's gradients by themselves",
                       "use reduce_bucket=0"};
  if (l.gradients != GradientFormat::kFp32)
    return Unsupported{
        "gradients", "bf16", "the worker keeps FP32 gradients", "use gradients=fp32"};
  if (l.moments != MomentFormat::kFp32)
    return Unsupported{"moments",
                       std::string(kMomentFormatNames(l.moments)),
                       "the worker keeps FP32 moments",
                       "use moments=fp32"};
  return std::nullopt;
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
  const std::optional<int64_t> window = plan.model().sliding_window;
  if (window && plan.workload().seq_len > *window) {
    return Error{.where = "/workload/seq_len",
                 .field = "seq_len",
                 .value = std::to_string(plan.workload().seq_len),
                 .rule = "exceeds the model's sliding window (" + std::to_string(*window) +
                         "), which the worker's attention does not have",
                 .remedy = "use --seq-len " + std::to_string(*window)};
  }
  if (!plan.workload().document_lengths.empty()) {
    return Error{.where = "/workload/document_lengths",
                 .field = "document_lengths",
                 .value = std::to_string(plan.workload().document_lengths.size()) + " lengths",
                 .rule =
                     "packs documents that do not attend to each other; the worker's attention "
                     "spans the sequence",
                 .remedy = "leave --document-lengths out"};
  }
  if (plan.workload().lora) {
    return Error{.where = "/workload/lora",
                 .field = "lora",
                 .value = std::to_string(plan.workload().lora->rank),
                 .rule = "the worker trains all parameters",
                 .remedy = "leave --lora-rank out"};
  }
  if (const std::string_view part = uncovered(plan.model()); !part.empty()) {
    return Error{.where = "/model",
                 .field = "model",
                 .value = plan.model().name,
                 .rule = "has " + std::string(part) + ", which the worker does not run",
                 .remedy =
                     "train a gpt2, llama, mistral, opt, qwen2 or qwen3 model, or plan this one "
                     "for a GPU cluster"};
  }
  if (!plan.layout().flash_attention) {
    return Error{.where = "/layout/flash_attention",
                 .field = "flash_attention",
                 .value = "off",
                 .rule = "the worker has fused attention only",
                 .remedy = "use flash_attention=on"};
  }
  if (const std::optional<Unsupported> u = unsupported(plan); u) {
    return Error{.where = std::string("/layout/") + u->field,
                 .field = u->field,
                 .value = u->value,
                 .rule = u->rule,
                 .remedy = u->remedy};
  }
  return std::nullopt;
}

}  // namespace meshwright
