// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/worker_job.h"

#include <filesystem>

namespace meshwright::cli {

Result<WorkerOutcome> run_workers(const WorkerJob& job, const Environment& env) {
  std::error_code ec;
  if (!std::filesystem::exists(env.worker_program, ec)) {
    return Error{.code = ErrorCode::kLaunchFailed,
                 .where = env.worker_program,
                 .rule = "is missing: this build has no executor",
                 .remedy = "run tools/setup.sh, which installs LibTorch, and build again"};
  }
  LaunchOptions options;
  options.program = env.worker_program;
  options.arguments = job.arguments;
  options.world_size = job.world_size;
  options.on_event = job.on_event;
  const LaunchOutcome outcome = launch_and_supervise(options);
  return WorkerOutcome{outcome.exit_status, outcome.message};
}

int report_failure(const WorkerOutcome& outcome, bool json) {
  print_errors(
      {Error{.where = "job", .rule = outcome.message.empty() ? "ended early" : outcome.message}},
      json);
  return outcome.exit_status;
}

}  // namespace meshwright::cli
