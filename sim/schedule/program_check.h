// A static check of a Program: complete, in order, and free of deadlock, whatever its durations.
//
// Reads: a Plan and its Program. Feeds: tests of every schedule, and anyone who writes a new one.
// The executor's rules are the ones checked: a send does not wait for its receiver but for the end
// of an earlier one (Program::pending_sends before it), a receive waits for its send.
#pragma once

#include <optional>

#include "sim/core/result.h"
#include "sim/schedule/program.h"

namespace meshwright {

/// Nothing, or the first defect by name:
/// - a block of a micro-batch that is not forwarded once and backwarded once (or once in each
/// half),
///   over all pipeline ranks and copies of the model;
/// - an action before what it reads: a forward before its input, a backward before forward,
///   recompute or output gradient, a weight pass before its input pass, a send before its tensor;
/// - sends of a channel that are not received in their order;
/// - ranks that wait for each other: the cycle, action by action.
[[nodiscard]] std::optional<Error> check_program(const Plan& plan, const Program& program);

}  // namespace meshwright
