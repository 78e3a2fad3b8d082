// SPDX-License-Identifier: Apache-2.0
#include "sim/launch/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace meshwright {
namespace {

/// Closes what it holds, so that every error path of start() leaks nothing.
struct Pipe {
  std::array<int, 2> fd{-1, -1};

  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int f : fd) {
      if (f >= 0) ::close(f);
    }
  }
  bool open() { return ::pipe2(fd.data(), O_CLOEXEC) == 0; }
  void close_write() { ::close(std::exchange(fd[1], -1)); }
  int release_read() { return std::exchange(fd[0], -1); }
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

Error start_error(const std::string& program, int error_number) {
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  return {.code = ErrorCode::kLaunchFailed,
          .where = program,
          .rule = fmt::format("cannot start the program: {}", std::strerror(error_number)),
          .remedy = missing ? "build or install it, or check its path"
                            : "check its permissions and the limits of this machine (ulimit -a)"};
}

/// After fork only async-signal-safe calls are allowed here: nothing that allocates or locks.
[[noreturn]] void become_worker(char* const* argv,
                                char* const* envp,
                                pid_t supervisor,
                                int null_fd,
                                int out,
                                int err,
                                int error_pipe,
                                const SignalWatch& signals) {
  auto fail = [error_pipe](int number) {
    [[maybe_unused]] const ssize_t n = ::write(error_pipe, &number, sizeof(number));
    ::_exit(127);
  };
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(errno);
  if (::getppid() != supervisor) ::_exit(127);  // it died before prctl: no signal would come
  ::setpgid(0, 0);
  // dup2 clears close-on-exec; on equal numbers it would not, but the pipes are never 0, 1 or 2
  // unless the supervisor itself runs without them, which start() excludes.
  if (::dup2(null_fd, STDIN_FILENO) < 0) fail(errno);
  if (::dup2(out, STDOUT_FILENO) < 0) fail(errno);
  if (::dup2(err, STDERR_FILENO) < 0) fail(errno);
#if defined(SYS_close_range)
  // Descriptors that someone opened without O_CLOEXEC stay here, too. 4: CLOSE_RANGE_CLOEXEC.
  // An old kernel says ENOSYS or EINVAL: then only our own, all O_CLOEXEC, are kept from the
  // worker.
  ::syscall(SYS_close_range, 3U, ~0U, 4U);
#endif
  signals.reset_in_child();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(argv[0], argv, envp);
  fail(errno);
  ::_exit(127);
}

/// A descriptor above 2, so that dup2 onto 0..2 cannot overwrite a pipe not yet placed.
bool move_above_standard(int& fd) {
  if (fd > STDERR_FILENO) return true;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (moved < 0) return false;
  ::close(std::exchange(fd, moved));
  return true;
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const std::string& program,
                                           const std::vector<std::string>& arguments,
                                           const std::vector<std::string>& environment,
                                           const SignalWatch& signals) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(environment);

  Pipe out;
  Pipe err;
  Pipe exec_error;  // closed by a successful exec, else carries errno
  Pipe null;        // its read end holds /dev/null
  null.fd[0] = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null.fd[0] < 0 || !out.open() || !err.open() || !exec_error.open()) {
    return start_error(program, errno);
  }
  for (int* fd : {&null.fd[0], &out.fd[1], &err.fd[1], &exec_error.fd[1]}) {
    if (!move_above_standard(*fd)) return start_error(program, errno);
  }

  // Signals are blocked over the fork: the child must not run our handlers, which write to the
  // supervisor's pipe.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t supervisor = ::getpid();
  const pid_t pid = ::fork();
  const int fork_errno = errno;
  if (pid == 0) {
    become_worker(argv.data(),
                  envp.data(),
                  supervisor,
                  null.fd[0],
                  out.fd[1],
                  err.fd[1],
                  exec_error.fd[1],
                  signals);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return start_error(program, fork_errno);
  ::setpgid(pid, pid);  // in both processes: whoever comes first
  exec_error.close_write();
  out.close_write();
  err.close_write();
  WorkerProcess worker(pid, out.release_read(), err.release_read());

  int exec_errno = 0;
  ssize_t n = 0;
  do {
    n = ::read(exec_error.fd[0], &exec_errno, sizeof(exec_errno));
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof(exec_errno))) return start_error(program, exec_errno);
  for (const int fd : {worker.stdout_fd_, worker.stderr_fd_}) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  return worker;
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      stdout_fd_(std::exchange(other.stdout_fd_, -1)),
      stderr_fd_(std::exchange(other.stderr_fd_, -1)) {}

WorkerProcess::~WorkerProcess() {
  if (running()) {
    signal(SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close_stdout();
  close_stderr();
}

void WorkerProcess::close_stdout() {
  if (stdout_fd_ >= 0) ::close(std::exchange(stdout_fd_, -1));
}

void WorkerProcess::close_stderr() {
  if (stderr_fd_ >= 0) ::close(std::exchange(stderr_fd_, -1));
}

void WorkerProcess::signal(int number) const {
  if (!running()) return;
  if (::kill(-pid_, number) != 0) ::kill(pid_, number);
}

std::optional<int> WorkerProcess::try_reap() {
  if (!running()) return std::nullopt;
  siginfo_t info{};
  const int result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  MW_CHECK(result == 0 || errno != ECHILD, "another part of this process reaped our worker");
  if (result != 0 || info.si_pid == 0) return std::nullopt;
  // Before reaping: until then the group's number cannot belong to anyone else.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

}  // namespace meshwright
