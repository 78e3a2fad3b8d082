// SPDX-License-Identifier: Apache-2.0
#include "sim/launch/signal_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "sim/core/check.h"

namespace meshwright {
namespace {

std::atomic<bool> watching{false};
std::atomic<int> write_end{-1};

void on_signal(int number) {
  const int saved = errno;
  const auto byte = static_cast<unsigned char>(number);
  // A full pipe means that signals wait to be read already: losing one more changes nothing.
  [[maybe_unused]] const ssize_t n = ::write(write_end.load(), &byte, 1);
  errno = saved;
}

}  // namespace

SignalWatch::SignalWatch() {
  MW_CHECK(!watching.exchange(true), "only one job at a time can be supervised in a process");
  if (::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0) pipe_ = {-1, -1};
  write_end = pipe_[1];
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    const bool ignored = before_[i].sa_handler == SIG_IGN;
    if (kSignals[i] == SIGCHLD) {
      action.sa_handler = SIG_DFL;
      if (!ignored) continue;
    } else {
      action.sa_handler = kSignals[i] == SIGPIPE ? SIG_IGN : on_signal;
      if (ignored) continue;
    }
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

SignalWatch::~SignalWatch() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  write_end = -1;
  for (const int fd : pipe_) {
    if (fd >= 0) ::close(fd);
  }
  watching = false;
}

std::optional<int> SignalWatch::take() {
  unsigned char number = 0;
  if (::read(pipe_[0], &number, 1) != 1) return std::nullopt;
  return number;
}

void SignalWatch::reset_in_child() const {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

}  // namespace meshwright
