// SPDX-License-Identifier: Apache-2.0
#include "sim/launch/diagnosis.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <tuple>

namespace meshwright {
namespace {

std::optional<int> killing_signal(const RankRecord& r) {
  if (!r.wait_status || !WIFSIGNALED(*r.wait_status)) return std::nullopt;
  return WTERMSIG(*r.wait_status);
}

std::optional<int> exit_code(const RankRecord& r) {
  if (!r.wait_status || !WIFEXITED(*r.wait_status)) return std::nullopt;
  return WEXITSTATUS(*r.wait_status);
}

/// True if the rank aborted long after another one had said that it failed.
bool aborted_late(const RankRecord& r, const std::vector<RankRecord>& records) {
  return std::any_of(records.begin(), records.end(), [&r](const RankRecord& other) {
    return other.failed && &other != &r && r.ended_at > other.failed_at + kLateAbort;
  });
}

/// Smaller is more to blame; see the head of diagnosis.h.
std::tuple<int, int64_t> blame(const RankRecord& r, const std::vector<RankRecord>& records) {
  const auto signal = r.ended_by_launcher ? std::nullopt : killing_signal(r);
  if (signal && *signal != SIGABRT) return {0, r.ended_at.count()};
  if (signal && !aborted_late(r, records)) return {1, r.ended_at.count()};
  if (r.failed) return {2, r.failed_t_ns};
  return {3, r.ended_at.count()};
}

/// The job's last step, where the rank itself reports none (often only rank 0 does).
std::optional<int64_t> last_step(const RankRecord& cause, const std::vector<RankRecord>& records) {
  std::optional<int64_t> step = cause.last_step;
  for (const RankRecord& r : records) {
    if (!cause.last_step && r.last_step) step = std::max(step.value_or(0), *r.last_step);
  }
  return step;
}

std::string describe(const RankRecord& cause, const std::vector<RankRecord>& records) {
  std::string text = fmt::format("rank {} ", cause.rank);
  const auto signal = killing_signal(cause);
  auto step = last_step(cause, records);
  std::string reason;
  if (signal && !cause.ended_by_launcher) {
    text += fmt::format("was killed by {}", signal_text(*signal));
    if (cause.failed) reason = cause.failed->message;
  } else if (cause.failed) {
    text += fmt::format("failed ({})", cause.failed->code);
    if (cause.failed->step) step = cause.failed->step;
    reason = cause.failed->message;
  } else {
    text += fmt::format("exited with status {}", exit_code(cause).value_or(0));
  }
  if (step) text += fmt::format(" at step {}", *step);
  if (cause.failed && cause.failed->action) text += fmt::format(" in {}", *cause.failed->action);
  if (!reason.empty()) text += ": " + reason;
  if (!cause.stderr_tail.empty()) text += "\n  its last lines on stderr:";
  for (const std::string& line : cause.stderr_tail) text += "\n    " + line;
  return text;
}

}  // namespace

std::string signal_text(int number) {
  const char* name = ::sigabbrev_np(number);
  if (name == nullptr) return fmt::format("signal {}", number);
  return fmt::format("signal {} (SIG{})", number, name);
}

bool has_failed(const RankRecord& record) {
  if (record.failed) return true;
  if (record.ended_by_launcher || !record.wait_status) return false;
  return *record.wait_status != 0;
}

LaunchOutcome diagnose(const std::vector<RankRecord>& records) {
  LaunchOutcome outcome;
  const RankRecord* cause = nullptr;
  bool all_negative = !records.empty();
  for (const RankRecord& r : records) {
    outcome.ranks.push_back({.rank = r.rank,
                             .exit_code = exit_code(r),
                             .signal = killing_signal(r),
                             .ended_by_launcher = r.ended_by_launcher,
                             .last_step = r.last_step});
    all_negative = all_negative && !r.ended_by_launcher && exit_code(r) == 1;
    if (has_failed(r) && (cause == nullptr || blame(r, records) < blame(*cause, records)))
      cause = &r;
  }
  if (cause == nullptr) return outcome;

  outcome.message = describe(*cause, records);
  if (all_negative) {
    outcome.exit_status = static_cast<int>(ErrorCode::kNegative);
    return outcome;
  }
  outcome.failed_rank = cause->rank;
  outcome.exit_status = static_cast<int>(ErrorCode::kRankFailed);
  const auto code = cause->ended_by_launcher ? std::nullopt : exit_code(*cause);
  if (code == static_cast<int>(ErrorCode::kBadInput) ||
      code == static_cast<int>(ErrorCode::kLaunchFailed)) {
    outcome.exit_status = *code;
  }
  return outcome;
}

}  // namespace meshwright
