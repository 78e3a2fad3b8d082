// Workload: what one step trains on, and the optimizer's recipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/dtype.h"
#include "sim/core/result.h"
#include "sim/spec/lora.h"

namespace meshwright {

enum class WorkloadKind { kPretrain, kSft };

/// AdamW with a linear warm-up to a constant rate, and a global-norm clip.
struct OptimizerRecipe {
  double learning_rate = 0;
  int64_t warmup_steps = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;
  double max_grad_norm = 1.0;  ///< 0 turns clipping off.

  friend bool operator==(const OptimizerRecipe&, const OptimizerRecipe&) = default;
};

struct Workload {
  std::string name;
  WorkloadKind kind = WorkloadKind::kPretrain;
  int64_t seq_len = 0;           ///< Tokens per sequence S.
  int64_t global_batch = 0;      ///< Sequences per optimizer step.
  std::optional<double> tokens;  ///< Budget of the whole run.
  Precision precision = Precision::kBf16;
  OptimizerRecipe optimizer;
  std::optional<LoraSpec> lora;  ///< Adapters are trained, the model is frozen.
  /// Tokens of documents that are packed into sequences and do not attend to each other, as a
  /// sample; longer ones are cut at seq_len. Empty: a sequence is one document.
  std::vector<int> document_lengths;
  uint64_t seed = 1;  ///< Of initial weights and sample order.

  [[nodiscard]] int64_t tokens_per_step() const { return seq_len * global_batch; }
  /// Tokens of the unpacked sequence whose causal attention costs as much per token: sum l^2 / sum
  /// l over the documents. Of a window of w tokens: sum (2 u l - u^2) / sum l with u = min(w, l).
  [[nodiscard]] double attention_span(std::optional<int64_t> window = {}) const;
  friend bool operator==(const Workload&, const Workload&) = default;
};

/// What the command line may override; unset fields keep the workload's own value.
struct WorkloadOverrides {
  std::optional<int64_t> seq_len;
  std::optional<int64_t> global_batch_tokens;
  std::optional<double> tokens;
  std::optional<Precision> precision;
  std::optional<LoraSpec> lora;
  std::optional<std::vector<int>> document_lengths;
};

/// A built-in name or a path to our JSON. `on_cpu` takes the document's values for CPU ranks (small
/// and FP32). Errors: unknown name, unknown key, a global batch that is not whole sequences.
[[nodiscard]] Result<Workload> load_workload(const std::string& name_or_path,
                                             bool on_cpu,
                                             const WorkloadOverrides& overrides);

[[nodiscard]] std::vector<std::string> builtin_workloads();

}  // namespace meshwright
