// SIGINT, SIGTERM and SIGHUP as something that poll() can wait for, for as long as a job runs.
//
// Why: without it Ctrl-C would end the supervisor at once and leave its workers to the kernel.
// SIGPIPE is ignored meanwhile: a closed terminal or `| head` must not end the supervisor either.
// SIGCHLD gets its default action where it is ignored: else no worker's exit status would be left.
// Feeds: sim/launch/launcher.cpp.
#pragma once

#include <signal.h>

#include <array>
#include <optional>

namespace meshwright {

/// Installs the handlers; the destructor restores the earlier ones. A signal that the process
/// ignores already (nohup's SIGHUP, a background job's SIGINT) stays ignored.
/// At most one object in a process at a time (MW_CHECK): handlers are process-wide.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// Readable when take() has something; -1 if the pipe could not be made (poll() skips it).
  [[nodiscard]] int fd() const { return pipe_[0]; }

  /// The number of a signal that arrived since, oldest first, or nullopt. Never blocks.
  [[nodiscard]] std::optional<int> take();

  /// Between fork and exec: gives the watched signals their default action. Async-signal-safe.
  void reset_in_child() const;

 private:
  static constexpr std::array<int, 5> kSignals{SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD};

  std::array<int, 2> pipe_{-1, -1};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace meshwright
