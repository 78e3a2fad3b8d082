// SPDX-License-Identifier: Apache-2.0
#include "sim/launch/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "sim/launch/diagnosis.h"
#include "sim/launch/job_folder.h"
#include "sim/launch/line_splitter.h"
#include "sim/launch/signal_watch.h"
#include "sim/launch/worker_process.h"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long the other ranks may show their own failure after the first one. A kill leaves no doubt
// about the cause, so then it is short.
constexpr milliseconds kSettle{1000};
constexpr milliseconds kSettleAfterKill{250};
// An ended worker closes its pipes, which wakes poll(); these bound how late its end is seen
// otherwise (a grandchild may hold the pipes) and between the closing and the end.
constexpr milliseconds kPollIdle{50};
constexpr milliseconds kPollEnding{2};
constexpr size_t kPipeReadBytes = size_t{64} << 10;
constexpr int kMaxReadsAfterEnd = 32;  // a pipe holds 64 KiB; a leftover writer must not hold us
constexpr size_t kTailLines = 10;
constexpr size_t kTailLineBytes = 500;

struct Rank {
  WorkerProcess process;
  RankRecord record;
  LineSplitter out{};
  LineSplitter err{};
};

class Supervisor {
 public:
  Supervisor(const LaunchOptions& options, SignalWatch& signals)
      : options_(options), signals_(signals) {}

  Result<Ok> start(const std::string& folder) {
    ranks_.reserve(static_cast<size_t>(options_.world_size));
    for (int rank = 0; rank < options_.world_size; ++rank) {
      auto process = WorkerProcess::start(
          options_.program, options_.arguments, rank_environment(options_, rank, folder), signals_);
      if (!process) {
        Error error = process.error();
        error.field = fmt::format("rank {}", rank);
        return error;
      }
      ranks_.push_back({.process = std::move(*process), .record = {.rank = rank}});
    }
    return Ok{};
  }

  LaunchOutcome run() {
    while (std::any_of(ranks_.begin(), ranks_.end(), [](auto& r) { return r.process.running(); })) {
      wait();
      reap();
      take_signals();
      end_job_when_due();
    }
    std::vector<RankRecord> records;
    for (Rank& r : ranks_) records.push_back(std::move(r.record));
    LaunchOutcome outcome = diagnose(records);
    // A signal that came when every rank was done already has stopped nothing.
    const bool stopped = std::any_of(
        outcome.ranks.begin(), outcome.ranks.end(), [](auto& r) { return r.ended_by_launcher; });
    if (signal_ && stopped) {
      outcome.exit_status = 128 + *signal_;
      outcome.failed_rank.reset();
      outcome.message = fmt::format("stopped by {}", signal_text(*signal_));
    }
    return outcome;
  }

 private:
  /// Waits for output, a signal, or the next deadline, and reads what has come.
  void wait() {
    std::vector<pollfd> fds{{.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
    milliseconds timeout = kPollIdle;
    for (const Rank& r : ranks_) {
      fds.push_back({.fd = r.process.stdout_fd(), .events = POLLIN, .revents = 0});
      fds.push_back({.fd = r.process.stderr_fd(), .events = POLLIN, .revents = 0});
      if (r.process.running() && r.process.stdout_fd() < 0) timeout = kPollEnding;
    }
    if (::poll(fds.data(), fds.size(), static_cast<int>(timeout.count())) <= 0) return;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      // One read a turn: a rank that writes without end must not keep us from the others.
      if (fds[1 + 2 * i].revents != 0) read_stdout(ranks_[i]);
      if (fds[2 + 2 * i].revents != 0) read_stderr(ranks_[i]);
    }
  }

  /// Reads once. True if there may be more; closes the pipe at its end.
  bool read_stdout(Rank& r) {
    auto on_line = [&](std::string_view line, bool cut) { on_stdout_line(r, line, cut); };
    return read_pipe(r.process.stdout_fd(), r.out, on_line, [&r] { r.process.close_stdout(); });
  }

  bool read_stderr(Rank& r) {
    auto on_line = [&](std::string_view line, bool cut) { on_stderr_line(r, line, cut); };
    return read_pipe(r.process.stderr_fd(), r.err, on_line, [&r] { r.process.close_stderr(); });
  }

  template <class Close>
  bool read_pipe(int fd, LineSplitter& lines, const LineSplitter::OnLine& on_line, Close close) {
    if (fd < 0) return false;
    const ssize_t n = ::read(fd, buffer_.data(), buffer_.size());
    if (n > 0) {
      lines.add({buffer_.data(), static_cast<size_t>(n)}, on_line);
      return true;
    }
    if (n < 0 && errno == EINTR) return true;
    if (n < 0 && errno == EAGAIN) return false;
    lines.finish(on_line);
    close();
    return false;
  }

  void on_stdout_line(Rank& r, std::string_view line, bool cut) {
    if (cut) {
      warn(r, "line_too_long", fmt::format("a line on stdout exceeds {} bytes", kMaxLineBytes));
      return;
    }
    const auto event = parse_event(line);
    if (!event) {
      on_stderr_line(r, line, false);
      // What looks like an event and is none points at a worker of another version.
      if (line.starts_with('{')) warn(r, "bad_event", to_string(event.error()));
      return;
    }
    if (!*event) return;
    if (const auto* step = std::get_if<StepEvent>(&(*event)->body)) {
      r.record.last_step = step->step;
    } else if (const auto* failed = std::get_if<FailedEvent>(&(*event)->body);
               failed != nullptr && !r.record.failed && !r.record.ended_by_launcher) {
      r.record.failed = *failed;
      r.record.failed_t_ns = (*event)->t_ns;
      r.record.failed_at = Clock::now() - started_at_;
      job_ends_in(kSettle);
    }
    if (options_.on_event) options_.on_event(**event);
  }

  void on_stderr_line(Rank& r, std::string_view line, bool cut) {
    auto& tail = r.record.stderr_tail;
    tail.emplace_back(line.substr(0, kTailLineBytes));
    if (tail.size() > kTailLines) tail.pop_front();
    show(r, line);
    if (cut) warn(r, "line_too_long", fmt::format("a line exceeds {} bytes", kMaxLineBytes));
  }

  void show(const Rank& r, std::string_view line) {
    if (options_.on_stderr) {
      options_.on_stderr(r.record.rank, line);
      return;
    }
    const std::string text = fmt::format("[rank {}] {}\n", r.record.rank, line);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }

  /// A warning of the launcher about a rank. Same clock as the workers': CLOCK_MONOTONIC.
  void warn(const Rank& r, std::string code, std::string message) {
    show(r, fmt::format("warning: {}: {}", code, message));
    if (!options_.on_event) return;
    const auto now = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    options_.on_event({.t_ns = now,
                       .rank = r.record.rank,
                       .body = WarningEvent{std::move(code), std::move(message)}});
  }

  void reap() {
    for (Rank& r : ranks_) {
      const auto status = r.process.try_reap();
      if (!status) continue;
      // What it wrote last is in the pipe still, and may say why it ended.
      for (int i = 0; i < kMaxReadsAfterEnd && read_stdout(r); ++i) {
      }
      for (int i = 0; i < kMaxReadsAfterEnd && read_stderr(r); ++i) {
      }
      r.process.close_stdout();
      r.process.close_stderr();
      r.record.wait_status = status;
      r.record.ended_at = Clock::now() - started_at_;
      if (has_failed(r.record)) job_ends_in(WIFSIGNALED(*status) ? kSettleAfterKill : kSettle);
    }
  }

  /// The first signal starts the end of the job, a later one skips what is left of the grace.
  void take_signals() {
    while (const auto number = signals_.take()) {
      // A rank that failed before is the news; the signal then only hurries.
      if (!signal_ && !deadline_) signal_ = number;
      deadline_ = Clock::now();
    }
  }

  void job_ends_in(milliseconds delay) {
    if (stopping_) return;
    const auto due = Clock::now() + delay;
    deadline_ = deadline_ ? std::min(*deadline_, due) : due;
  }

  /// The two stages of the end: SIGTERM to all at the deadline, SIGKILL after the grace.
  void end_job_when_due() {
    if (!deadline_ || Clock::now() < *deadline_) return;
    if (stopping_) {
      kill_now();
      return;
    }
    stopping_ = true;
    deadline_ = Clock::now() + options_.kill_grace;
    for (Rank& r : ranks_) {
      r.record.ended_by_launcher = r.process.running();
      r.process.signal(SIGTERM);
    }
  }

  void kill_now() {
    stopping_ = true;
    deadline_ = Clock::now() + options_.kill_grace;
    for (Rank& r : ranks_) {
      r.record.ended_by_launcher = r.record.ended_by_launcher || r.process.running();
      r.process.signal(SIGKILL);
    }
  }

  const LaunchOptions& options_;
  SignalWatch& signals_;
  std::vector<Rank> ranks_;
  std::array<char, kPipeReadBytes> buffer_{};
  Clock::time_point started_at_ = Clock::now();
  std::optional<int> signal_;
  std::optional<Clock::time_point> deadline_;  ///< Set by the first failure or signal.
  bool stopping_ = false;                      ///< SIGTERM was sent.
};

LaunchOutcome not_started(const Error& error) {
  return {.exit_status = static_cast<int>(error.code), .message = to_string(error)};
}

}  // namespace

LaunchOutcome launch_and_supervise(const LaunchOptions& options) {
  if (options.world_size < 1) {
    return not_started({.where = options.program,
                        .field = "world size",
                        .value = std::to_string(options.world_size),
                        .rule = "must be at least 1"});
  }
  // In this order, so that the folder goes after the workers and the handlers are restored last.
  SignalWatch signals;
  auto folder = JobFolder::create();
  if (!folder) return not_started(folder.error());
  Supervisor supervisor(options, signals);
  if (auto started = supervisor.start(folder->path()); !started) {
    return not_started(started.error());
  }
  return supervisor.run();
}

}  // namespace meshwright
