// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/verb.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "sim/core/text.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright::cli {

Verb make_verb(CLI::App& app, const std::string& name, const std::string& help) {
  Verb verb{
      .app = app.add_subcommand(name, help), .run = {}, .json = std::make_shared<bool>(false)};
  verb.app->add_flag("--json", *verb.json, "One JSON document on stdout; prose on stderr");
  return verb;
}

void ProblemOptions::add_to(CLI::App& verb) {
  verb.add_option("--model", model, "Built-in name, config.json or its folder")->required();
  verb.add_option("--cluster", cluster, "COUNTxDEVICE (64xa100-80g, 4xlocal) or a path to JSON")
      ->required();
  verb.add_option("--workload", workload, "pretrain, sft or a path to JSON")->capture_default_str();
  verb.add_option("--seq-len", seq_len, "Tokens per sequence");
  verb.add_option("--global-batch", global_batch, "Tokens per optimizer step, e.g. 4Mi");
  verb.add_option("--tokens", tokens, "Tokens of the whole run, e.g. 15T");
  verb.add_option("--precision", precision, "fp32, bf16 or fp8");
  verb.add_option("--lora-rank", lora_rank, "Train low-rank adapters; the model is frozen");
  verb.add_option("--base-format", base_format, "Of the frozen model: bf16 or nf4 (QLoRA)");
  verb.add_option(
      "--document-lengths",
      document_lengths,
      "Tokens of packed documents that do not attend to each other, a sample: 300,1200");
  verb.add_option(
      "--calibration", calibration, "Calibration file (default: the newest of this machine)");
  verb.add_flag("--force", force, "Use a calibration of another machine");
  verb.add_option("--layout",
                  layout,
                  "Pin axes: tp=2,pp=2,dp=2,cp=2,ep=8,sp=on,zero_stage=3,micro_batch=1,"
                  "recompute=full,schedule=interleaved,virtual_stages=2,offload_optimizer=host");
  verb.add_option(
      "--stages", stages, "Decoder layers per stage: 3,5, or balanced: by what blocks cost");
}

Result<std::shared_ptr<const Problem>> ProblemOptions::load(const Environment& env) const {
  constexpr int64_t kHuge = 1'000'000'000'000'000;
  auto problem = std::make_shared<Problem>();
  MW_ASSIGN_OR_RETURN(problem->model, load_model(model));
  MW_ASSIGN_OR_RETURN(problem->cluster, load_cluster(cluster, env.machine));
  WorkloadOverrides o;
  if (!seq_len.empty()) {
    MW_ASSIGN_OR_RETURN(o.seq_len, parse_count("--seq-len", seq_len, 1, 100'000'000));
  }
  if (!global_batch.empty()) {
    MW_ASSIGN_OR_RETURN(o.global_batch_tokens,
                        parse_count("--global-batch", global_batch, 1, kHuge));
  }
  if (!tokens.empty()) {
    MW_ASSIGN_OR_RETURN(const int64_t budget, parse_count("--tokens", tokens, 1, kHuge));
    o.tokens = static_cast<double>(budget);
  }
  if (!base_format.empty() && lora_rank.empty()) {
    return Error{.where = "--base-format",
                 .field = "base_format",
                 .value = base_format,
                 .rule = "is of the frozen model of low-rank adapters",
                 .remedy = "give --lora-rank too"};
  }
  if (!lora_rank.empty()) {
    MW_ASSIGN_OR_RETURN(const int64_t rank, parse_count("--lora-rank", lora_rank, 1, 65536));
    const auto base = kBaseFormatNames.parse(base_format.empty() ? "bf16" : base_format);
    if (!base) {
      return Error{.where = "--base-format",
                   .field = "base_format",
                   .value = base_format,
                   .rule = "must be one of " + join(kBaseFormatNames.list())};
    }
    o.lora = LoraSpec{.rank = static_cast<int>(rank), .base = *base};
  }
  if (!document_lengths.empty()) {
    o.document_lengths.emplace();
    for (const std::string& item : split(document_lengths, ',')) {
      MW_ASSIGN_OR_RETURN(const int64_t length,
                          parse_count("--document-lengths", item, 1, 1'000'000'000));
      o.document_lengths->push_back(static_cast<int>(length));
    }
  }
  if (!precision.empty()) {
    o.precision = kPrecisionNames.parse(precision);
    if (!o.precision) {
      return Error{.where = "--precision",
                   .field = "precision",
                   .value = precision,
                   .rule = "must be one of " + join(kPrecisionNames.list())};
    }
  }
  MW_ASSIGN_OR_RETURN(problem->workload, load_workload(workload, problem->cluster.is_local(), o));
  return std::shared_ptr<const Problem>(std::move(problem));
}

std::string job_text(const Problem& p) {
  const Workload& w = p.workload;
  std::string text =
      fmt::format("{} ({:.4g} B parameters) on {}, {}: {} sequences of {} tokens per step",
                  p.model.name,
                  static_cast<double>(parameter_count(p.model)) / 1e9,
                  p.cluster.name,
                  w.name,
                  w.global_batch,
                  w.seq_len);
  if (!w.document_lengths.empty())
    text +=
        fmt::format(", of packed documents (attention as of {:.0f} tokens)", w.attention_span());
  return text;
}

Result<CostModel> load_cost_model(const ClusterSpec& cluster,
                                  const std::string& calibration_path,
                                  bool force,
                                  const Environment& env) {
  std::shared_ptr<const Calibration> calibration;
  if (cluster.is_local() || !calibration_path.empty()) {
    MW_ASSIGN_OR_RETURN(
        std::optional<Calibration> found,
        find_calibration(calibration_path, env.calibration_dir, env.machine.id, force));
    if (found) calibration = std::make_shared<const Calibration>(*std::move(found));
  }
  return CostModel(cluster, std::move(calibration));
}

Result<int64_t> parse_count(const std::string& flag,
                            const std::string& text,
                            int64_t min,
                            int64_t max) {
  const Error bad{.where = flag,
                  .field = flag.substr(flag.find_first_not_of('-')),
                  .value = text,
                  .rule = fmt::format("must be a whole number from {} to {}", min, max),
                  .remedy = max > 4096 ? "write for example 4096, 4Mi or 15T" : ""};
  double number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec != std::errc{}) return bad;
  static const std::pair<std::string, double> kSuffixes[] = {{"", 1.0},
                                                             {"K", 1e3},
                                                             {"M", 1e6},
                                                             {"G", 1e9},
                                                             {"B", 1e9},
                                                             {"T", 1e12},
                                                             {"Ki", 1024.0},
                                                             {"Mi", 1048576.0},
                                                             {"Gi", 1073741824.0},
                                                             {"Ti", 1099511627776.0}};
  const std::string suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor] : kSuffixes) {
    if (suffix != name) continue;
    const double value = number * factor;
    if (!(value >= static_cast<double>(min) && value <= static_cast<double>(max))) return bad;
    const auto whole = static_cast<int64_t>(value);
    if (static_cast<double>(whole) != value) return bad;
    return whole;
  }
  return bad;
}

void print_errors(const std::vector<Error>& errors, bool json) {
  for (const Error& e : errors) fmt::print(stderr, "meshwright: {}\n", to_string(e));
  if (!json) return;
  Json list = Json::array();
  for (const Error& e : errors) {
    list.push_back({{"where", e.where},
                    {"field", e.field},
                    {"value", e.value},
                    {"rule", e.rule},
                    {"remedy", e.remedy}});
  }
  print_json({{"schema_version", kOutputSchemaVersion}, {"errors", std::move(list)}});
}

void print_json(const Json& document) {
  fmt::print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
}

ProgressLine::~ProgressLine() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::show(const std::string& text) {
  if (!interactive_) return;
  shown_ = true;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
}

}  // namespace meshwright::cli
