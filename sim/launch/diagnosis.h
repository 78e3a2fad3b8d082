// Which rank is to blame? One dead rank makes the others fail, too, often within milliseconds.
//
// Rule, strongest evidence first: a rank killed by a signal from outside the launcher (the earliest
// seen; SIGABRT after the others); else the `failed` event with the earliest time; else the first
// rank that exited with a status other than 0. A SIGABRT that comes kLateAbort after another rank's
// `failed` event is no evidence: survivors abort when they lose a peer. Ranks that the launcher
// itself ended are never the cause. Pure function of sim/launch/launcher.cpp's records.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "sim/launch/launcher.h"

namespace meshwright {

/// Followers of an abort report it within milliseconds; followers that abort take longer.
inline constexpr std::chrono::milliseconds kLateAbort{100};

/// What the launcher saw of one rank.
struct RankRecord {
  int rank = 0;
  std::optional<int> wait_status;       ///< Of waitpid(); nullopt while it runs.
  std::chrono::nanoseconds ended_at{};  ///< When its end was seen, since the job's start.
  bool ended_by_launcher = false;
  std::optional<int64_t> last_step;
  std::optional<FailedEvent> failed;     ///< Its first one.
  int64_t failed_t_ns = 0;               ///< As the event says it.
  std::chrono::nanoseconds failed_at{};  ///< When the event was seen, since the job's start.
  std::deque<std::string> stderr_tail;
};

/// True if the rank says or shows that it failed (and the launcher did not end it).
[[nodiscard]] bool has_failed(const RankRecord& record);

/// The outcome of a job whose ranks have all ended. Ignores signals to the launcher.
[[nodiscard]] LaunchOutcome diagnose(const std::vector<RankRecord>& records);

/// "signal 9 (SIGKILL)".
[[nodiscard]] std::string signal_text(int number);

}  // namespace meshwright
