// One local worker process with its two pipes, which cannot outlive its owner.
//
// Why by hand and not std::system or popen: the worker gets its own process group (so that its
// children end with it), dies with its supervisor even if that is killed by SIGKILL
// (PR_SET_PDEATHSIG), inherits no file descriptor, and a program that cannot be started is told
// apart from one that fails. Linux only. Feeds: sim/launch/launcher.cpp.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/launch/signal_watch.h"

namespace meshwright {

/// A running (or ended, not yet reaped) worker. Not thread-safe. Start it from a thread that lives
/// as long as the object: PR_SET_PDEATHSIG fires at the end of the starting thread.
class WorkerProcess {
 public:
  /// Starts `program` (a path, or a name looked up in PATH) with stdin from /dev/null.
  /// @param environment  The whole environment, "NAME=value".
  /// @return  kLaunchFailed naming the program and why it did not start.
  [[nodiscard]] static Result<WorkerProcess> start(const std::string& program,
                                                   const std::vector<std::string>& arguments,
                                                   const std::vector<std::string>& environment,
                                                   const SignalWatch& signals);

  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  /// Kills the process group, waits for the worker and closes the pipes.
  ~WorkerProcess();

  /// Non-blocking read ends; -1 once closed.
  [[nodiscard]] int stdout_fd() const { return stdout_fd_; }
  [[nodiscard]] int stderr_fd() const { return stderr_fd_; }
  void close_stdout();
  void close_stderr();

  [[nodiscard]] bool running() const { return pid_ > 0; }

  /// Sends a signal to the worker and its children; nothing if it was reaped.
  void signal(int number) const;

  /// If the worker has ended: kills what is left of its group, reaps it and returns the status of
  /// waitpid(), once. Otherwise nullopt. Never blocks.
  [[nodiscard]] std::optional<int> try_reap();

 private:
  WorkerProcess(pid_t pid, int stdout_fd, int stderr_fd)
      : pid_(pid), stdout_fd_(stdout_fd), stderr_fd_(stderr_fd) {}

  pid_t pid_ = -1;
  int stdout_fd_ = -1;
  int stderr_fd_ = -1;
};

}  // namespace meshwright
