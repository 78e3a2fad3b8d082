// SPDX-License-Identifier: Apache-2.0
// meshwright-worker: one rank of a job. Started by `meshwright run`, or by torchrun, mpirun or
// srun.
#include <ATen/Parallel.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "exec/runtime/counting_allocator.h"
#include "exec/telemetry/event_writer.h"
#include "exec/worker/calibrate_command.h"
#include "exec/worker/train_command.h"
#include "exec/worker/verify_command.h"
#include "exec/worker/worker_environment.h"

namespace meshwright {
namespace {

Result<int> number_from(const char* name, int fallback, int min) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [rest, failure] = std::from_chars(text, end, value);
  if (failure != std::errc{} || rest != end || value < min) {
    return Error{.where = "environment",
                 .field = name,
                 .value = text,
                 .rule = "must be an integer of at least " + std::to_string(min),
                 .remedy = "start the worker by `meshwright run`"};
  }
  return value;
}

Result<WorkerEnvironment> read_environment() {
  WorkerEnvironment e;
  MW_ASSIGN_OR_RETURN(e.rank, number_from("RANK", 0, 0));
  MW_ASSIGN_OR_RETURN(e.world_size, number_from("WORLD_SIZE", 1, 1));
  if (e.rank >= e.world_size) {
    return Error{.where = "environment",
                 .field = "RANK",
                 .value = std::to_string(e.rank),
                 .rule = "must be below WORLD_SIZE (" + std::to_string(e.world_size) + ")",
                 .remedy = "start the worker by `meshwright run`"};
  }
  const char* store = std::getenv("MESHWRIGHT_STORE");
  if (store == nullptr && e.world_size > 1) {
    return Error{.where = "environment",
                 .field = "MESHWRIGHT_STORE",
                 .value = "",
                 .rule = "several ranks need a place to meet",
                 .remedy = "set it to file:PATH or tcp:HOST:PORT, the same on all ranks"};
  }
  e.store_url = store != nullptr ? store : "file:unused";
  return e;
}

int fail(EventWriter& events, const char* code, const std::string& message, ErrorCode status) {
  events.emit(FailedEvent{.code = code, .step = {}, .action = {}, .message = message});
  return static_cast<int>(status);
}

int run(int argc, char** argv) {
  const auto environment = read_environment();
  EventWriter events(environment ? environment->rank : 0, stdout);
  if (!environment)
    return fail(events, "bad_input", to_string(environment.error()), ErrorCode::kBadInput);

  CLI::App app("One rank of a meshwright job.", "meshwright-worker");
  app.require_subcommand(1);
  TrainArguments train;
  CLI::App* train_app = app.add_subcommand("train", "Trains a plan and reports what it measured");
  train_app->add_option("plan", train.plan_path, "Plan file")->required();
  train_app->add_option("--data", train.data_path, "Token file")->required();
  train_app->add_option("--steps", train.steps, "Optimizer steps")
      ->required()
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}));
  train_app->add_option("--out", train.out_dir, "Folder for rank<r>.json")->required();
  VerifyArguments verify;
  CLI::App* verify_app = app.add_subcommand("verify", "Compares layouts with one rank");
  verify_app->add_option("--cases", verify.cases_dir, "Folder of plan files case*.json")
      ->required();
  verify_app->add_option("--output", verify.output_path, "Results file")->required();
  verify_app->add_option("--inject", verify.inject, "A fault to make");
  CalibrateArguments calibrate;
  CLI::App* calibrate_app = app.add_subcommand("calibrate", "Measures this machine");
  calibrate_app->add_option("--output", calibrate.output_path, "Calibration file")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help
    return fail(events, "bad_input", e.what(), ErrorCode::kBadInput);
  }
  try {
    if (verify_app->parsed()) return run_verify(verify, *environment, events);
    if (calibrate_app->parsed()) return run_calibrate(calibrate, *environment, events);
    return run_train(train, *environment, events);
  } catch (const std::exception& e) {  // c10::Error, or Gloo's own
    const std::string text = e.what();
    return fail(events, "rank_failed", text.substr(0, text.find('\n')), ErrorCode::kRankFailed);
  }
}

}  // namespace
}  // namespace meshwright

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);  // a dead peer must show as an error, not end us silently
  meshwright::install_counting_allocator();
  at::set_num_threads(1);
  const int status = meshwright::run(argc, argv);
  std::fflush(nullptr);
  ::_exit(status);  // tensors of Gloo's threads may outlive any order of destructors
}
