// Starting meshwright-worker for the verbs that need LibTorch, and telling a person how it ended.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/cli/verb.h"
#include "sim/launch/launcher.h"

namespace meshwright::cli {

/// Runs `world_size` workers; their stderr goes to ours. Returns Ok when all exited with 0; status
/// 1 (a negative answer) is returned as kNegative, a rank's failure as kRankFailed with the rank in
/// the message, a signal as its status in `signal_status`.
struct WorkerJob {
  std::vector<std::string> arguments;
  int world_size = 1;
  std::function<void(const Event&)> on_event;
};

struct WorkerOutcome {
  int exit_status = 0;
  std::string message;  ///< Empty on success.
};

/// Error kLaunchFailed when the worker program is missing (it is built only where LibTorch is).
[[nodiscard]] Result<WorkerOutcome> run_workers(const WorkerJob& job, const Environment& env);

/// Prints how a failed job ended (and, with json, the errors document) and returns its exit status.
int report_failure(const WorkerOutcome& outcome, bool json);

}  // namespace meshwright::cli
