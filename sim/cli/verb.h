// What all verbs share: their options, how they report mistakes, and what they load.
//
// Contract: with --json, one document on stdout; prose goes to stderr. Exit status: see ErrorCode.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_reader.h"
#include "sim/core/result.h"
#include "sim/cost/cost_model.h"
#include "sim/mesh/layout_pins.h"
#include "sim/plan/plan.h"

namespace meshwright::cli {

inline constexpr int kOutputSchemaVersion = 1;

/// Facts of the process that verbs need and only main reads.
struct Environment {
  MachineFacts machine;
  std::string worker_program;   ///< meshwright-worker, beside this program.
  std::string calibration_dir;  ///< Where `calibrate` leaves this machine's files.
  bool interactive = false;     ///< stderr is a terminal: progress lines are welcome.
};

/// Runs a verb and returns the exit status; an Error is printed by main.
using VerbAction = std::function<Result<int>()>;

/// One verb: its CLI11 sub-command, what to run, and whether --json was given.
struct Verb {
  CLI::App* app = nullptr;
  VerbAction run;
  std::shared_ptr<bool> json;
};

/// A sub-command with --json; the caller adds options and sets `run`.
[[nodiscard]] Verb make_verb(CLI::App& app, const std::string& name, const std::string& help);

/// --model --cluster --workload and what overrides them.
struct ProblemOptions {
  std::string model, cluster, workload = "pretrain";
  std::string seq_len, global_batch, tokens, precision;
  std::string lora_rank, base_format, document_lengths;
  std::string calibration;
  bool force = false;
  std::string layout, stages;

  void add_to(CLI::App& verb);
  [[nodiscard]] Result<std::shared_ptr<const Problem>> load(const Environment& env) const;
  [[nodiscard]] Result<LayoutPins> pins() const { return parse_layout_pins(layout, stages); }
};

/// "llama-3-8b (8.03 B parameters) on 64xh100, pretrain: 1024 sequences of 4096 tokens per step".
[[nodiscard]] std::string job_text(const Problem& problem);

/// The cost model for `cluster`: calibrated when it is this machine and a calibration is given or
/// found.
[[nodiscard]] Result<CostModel> load_cost_model(const ClusterSpec& cluster,
                                                const std::string& calibration_path,
                                                bool force,
                                                const Environment& env);

/// A whole number, with an optional suffix K M G T (powers of 1000) or Ki Mi Gi Ti (of 1024).
[[nodiscard]] Result<int64_t> parse_count(const std::string& flag,
                                          const std::string& text,
                                          int64_t min,
                                          int64_t max);

/// Prints errors: one line each on stderr, and with `json` the document {schema_version, errors[]}
/// on stdout.
void print_errors(const std::vector<Error>& errors, bool json);
void print_json(const Json& document);

/// Redraws one line on a terminal; silent elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(bool interactive) : interactive_(interactive) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const std::string& text);
  [[nodiscard]] bool interactive() const { return interactive_; }

 private:
  bool interactive_;
  bool shown_ = false;
};

}  // namespace meshwright::cli
