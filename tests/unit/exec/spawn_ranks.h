// Runs a test body on several real processes: fork, one rank each, connected through a FileStore.
//
// The parent never runs a tensor operation, so that no torch thread exists when it forks.
#pragma once

#include <chrono>
#include <functional>

#include "exec/comm/communicator.h"

namespace meshwright {

/// Forks `world_size` children; each connects and runs `body`. Passes when every child ends without
/// a failed expectation and without an exception. A child that takes over 25 s is ended by a
/// signal.
void spawn_ranks(int world_size,
                 const std::function<void(CommWorld& world)>& body,
                 std::chrono::milliseconds timeout = std::chrono::seconds(20));

/// Runs `body` in one forked child, without a connection.
void spawn_one(const std::function<void()>& body);

}  // namespace meshwright
