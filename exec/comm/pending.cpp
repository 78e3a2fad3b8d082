// SPDX-License-Identifier: Apache-2.0
// Waiting: every work is waited for even when one fails, because a buffer may only be let go once
// no Gloo thread can touch it any more.
#include <exception>
#include <utility>

#include "exec/comm/pending_state.h"

namespace meshwright {

Pending::Pending() = default;

Pending::Pending(std::unique_ptr<State> state) : state_(std::move(state)) {}

Pending::Pending(Pending&&) noexcept = default;

Pending& Pending::operator=(Pending&& other) noexcept {
  Pending before(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

Pending::~Pending() {
  try {
    wait();
  } catch (...) {
    // A destructor cannot report it; the next operation on the broken group fails as well.
  }
}

void Pending::wait() {
  if (!state_) return;
  const auto state = std::move(state_);
  std::exception_ptr first_error;
  for (const auto& work : state->works) {
    try {
      work->wait();
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
    }
  }
  if (first_error) std::rethrow_exception(first_error);
}

bool Pending::valid() const { return state_ != nullptr; }

}  // namespace meshwright
