// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/workload.h"

#include <fmt/format.h>

#include <filesystem>

#include "sim/core/json_reader.h"
#include "sim/spec/builtin_documents.h"
#include "sim/spec/lora_json.h"

namespace meshwright {
namespace {

constexpr Range kTokenRange{1, 1e18};
/// Sequences per step. A step is simulated micro-batch by micro-batch, so that this bounds its
/// cost.
constexpr int64_t kMaxSequences = 1 << 20;

/// The fields that a document states once for accelerators and, under "on_cpu", again for CPU
/// ranks.
void read_sizes(ObjectReader& r, Workload& w, int64_t& batch_tokens) {
  w.seq_len = r.integer_or("seq_len", w.seq_len, {1, 1e9});
  batch_tokens = r.integer_or("global_batch_tokens", batch_tokens, kTokenRange);
  w.precision = r.word("precision", kPrecisionNames, std::optional(w.precision));
  w.optimizer.learning_rate = r.number_or("learning_rate", w.optimizer.learning_rate, {0, 10});
  w.optimizer.warmup_steps = r.integer_or("warmup_steps", w.optimizer.warmup_steps, {0, 1e9});
}

}  // namespace

double Workload::attention_span(std::optional<int64_t> window) const {
  double all = 0, pairs = 0;
  const auto add = [&](double length, double count) {
    const double seen = window ? std::min(static_cast<double>(*window), length) : length;
    all += count * length;
    pairs += count * (2 * seen * length - seen * seen);
  };
  if (document_lengths.empty()) add(static_cast<double>(seq_len), 1);
  for (const int64_t length : document_lengths) {
    add(static_cast<double>(seq_len), static_cast<double>(length / seq_len));
    add(static_cast<double>(length % seq_len), 1);
  }
  return pairs / all;
}

Result<Workload> load_workload(const std::string& name_or_path,
                               bool on_cpu,
                               const WorkloadOverrides& overrides) {
  std::string text;
  std::string origin = name_or_path;
  if (const auto builtin = builtin_document("workloads", name_or_path)) {
    text = *builtin;
    origin = "built-in " + name_or_path;
  } else {
    std::error_code ec;
    if (!std::filesystem::exists(name_or_path, ec)) {
      return Error{.where = "--workload",
                   .field = "workload",
                   .value = name_or_path,
                   .rule = "is neither a built-in name nor a path that exists",
                   .remedy = "built-in: " + join(builtin_workloads())};
    }
    MW_ASSIGN_OR_RETURN(text, read_text_file(name_or_path));
  }
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, origin));

  Workload w;
  int64_t batch_tokens = 0;
  ObjectReader r(json, origin);
  r.integer("schema_version", {1, 1});
  r.ignore("sources");
  w.name = r.text("name");
  w.kind = r.choice("kind", {"pretrain", "sft"}, "") == "sft" ? WorkloadKind::kSft
                                                              : WorkloadKind::kPretrain;
  r.integer("seq_len", {1, 1e9});
  r.integer("global_batch_tokens", kTokenRange);
  read_sizes(r, w, batch_tokens);
  w.tokens = r.optional_number("tokens", kTokenRange);
  w.optimizer.beta1 = r.number_or("beta1", 0.9, {0, 0.9999999});
  w.optimizer.beta2 = r.number_or("beta2", 0.95, {0, 0.9999999});
  w.optimizer.eps = r.number_or("eps", 1e-8, {1e-20, 1});
  w.optimizer.weight_decay = r.number_or("weight_decay", 0.0, {0, 10});
  w.optimizer.max_grad_norm = r.number_or("max_grad_norm", 1.0, {0, 1e9});
  if (r.has("lora")) {
    MW_ASSIGN_OR_RETURN(w.lora,
                        lora_from_json(r.object("lora"), origin, "/lora", BaseFormat::kBf16));
  }
  w.document_lengths = r.integers_or_empty("document_lengths", {1, 1e9});
  w.seed = static_cast<uint64_t>(r.integer_or("seed", 1, {0, 9e15}));
  const Json& cpu = r.object("on_cpu", false);
  ObjectReader cpu_reader(cpu, origin, "/on_cpu");
  Workload on_cpu_values = w;
  int64_t cpu_tokens = batch_tokens;
  read_sizes(cpu_reader, on_cpu_values, cpu_tokens);
  MW_RETURN_IF_ERROR(r.finish());
  MW_RETURN_IF_ERROR(cpu_reader.finish());
  if (on_cpu) {
    w = on_cpu_values;
    batch_tokens = cpu_tokens;
  }

  if (overrides.seq_len) w.seq_len = *overrides.seq_len;
  if (overrides.global_batch_tokens) batch_tokens = *overrides.global_batch_tokens;
  if (overrides.tokens) w.tokens = overrides.tokens;
  if (overrides.precision) w.precision = *overrides.precision;
  if (overrides.lora) w.lora = overrides.lora;
  if (overrides.document_lengths) w.document_lengths = *overrides.document_lengths;
  if (batch_tokens % w.seq_len != 0) {
    const int64_t below = std::max<int64_t>(1, batch_tokens / w.seq_len) * w.seq_len;
    return Error{.where = overrides.global_batch_tokens ? "--global-batch" : origin,
                 .field = "global_batch_tokens",
                 .value = std::to_string(batch_tokens),
                 .rule = fmt::format("must be a multiple of the sequence length ({})", w.seq_len),
                 .remedy = fmt::format("use {} or {}", below, below + w.seq_len)};
  }
  w.global_batch = batch_tokens / w.seq_len;
  if (w.global_batch > kMaxSequences) {
    return Error{
        .where = overrides.global_batch_tokens ? "--global-batch" : origin,
        .field = "global_batch_tokens",
        .value = std::to_string(batch_tokens),
        .rule = fmt::format(
            "is {} sequences of {} tokens, more than {}", w.global_batch, w.seq_len, kMaxSequences),
        .remedy = fmt::format("use at most {}, or a longer sequence", kMaxSequences * w.seq_len)};
  }
  return w;
}

std::vector<std::string> builtin_workloads() { return builtin_names("workloads"); }

}  // namespace meshwright
