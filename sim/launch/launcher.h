// Starts the N local worker processes of a job, relays what they say and ends them together.
//
// Used by `meshwright run`, `verify` and `calibrate`. Why not torchrun: it needs Python, and it
// cannot say which rank failed first and in which step. Reads: worker events
// (sim/protocol/events.h) from each stdout, lines from each stderr. Feeds: the verbs' output.
//
// Each rank's environment is ours plus RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE (torchrun's
// names), MESHWRIGHT_STORE=file:PATH (in a fresh folder, removed at the end) and OMP_NUM_THREADS=1.
// When a rank fails, the launcher waits up to a second for the others, whose own deaths tell cause
// from consequence, then sends SIGTERM, and after `kill_grace` SIGKILL. No process outlives it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/protocol/events.h"

namespace meshwright {

struct LaunchOptions {
  std::string program;  ///< A path, or a name looked up in PATH.
  std::vector<std::string> arguments;
  int world_size = 1;  ///< >= 1.
  /// Added to every rank's environment; may override all but the rank's own numbers.
  std::vector<std::pair<std::string, std::string>> environment;
  /// Called for each event, in the order of arrival. May be empty. Called, like on_stderr, from
  /// within launch_and_supervise; while it runs nobody reads the workers' pipes, so it must be
  /// quick.
  std::function<void(const Event&)> on_event;
  /// Called for each line on a worker's stderr, and for lines on stdout that are no event.
  /// Default: "[rank r] line" on our stderr.
  std::function<void(int rank, std::string_view line)> on_stderr;
  std::chrono::milliseconds kill_grace{2000};  ///< From SIGTERM to SIGKILL.
};

/// How one rank ended.
struct RankExit {
  int rank = 0;
  std::optional<int> exit_code;    ///< If it ended by exit().
  std::optional<int> signal;       ///< If a signal killed it.
  bool ended_by_launcher = false;  ///< It was still running when the launcher began to end the job.
  std::optional<int64_t> last_step;  ///< Of its last step event.
};

struct LaunchOutcome {
  /// 0 done. 1: every rank's answer is negative (all exited with 1). 2: a worker refused its input.
  /// 70: a rank failed. 75: a rank could not be started (or asked for another try by exiting with
  /// 75). 128+n: the launcher got signal n.
  int exit_status = 0;
  std::optional<int> failed_rank;  ///< The root cause, if it is one rank.
  /// Empty if exit_status is 0. First line: what happened, e.g. "rank 2 was killed by signal 9
  /// (SIGKILL) at step 17"; then the last lines of that rank's stderr, if there are any.
  std::string message;
  std::vector<RankExit> ranks;  ///< By rank; empty if not every rank could be started.
};

/// Runs the job to its end. Blocks; one at a time in a process (MW_CHECK). SIGINT, SIGTERM and
/// SIGHUP end the job (a second one at once); their earlier handlers are back afterwards.
[[nodiscard]] LaunchOutcome launch_and_supervise(const LaunchOptions& options);

}  // namespace meshwright
