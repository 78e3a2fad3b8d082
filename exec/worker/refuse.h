// How a worker says that it cannot use its input: a `failed` event and exit status 2.
#pragma once

#include "exec/telemetry/event_writer.h"
#include "sim/core/result.h"

namespace meshwright {

/// Emits the event; returns the exit status.
inline int refuse(EventWriter& events, const Error& error) {
  events.emit(
      FailedEvent{.code = "bad_input", .step = {}, .action = {}, .message = to_string(error)});
  return static_cast<int>(ErrorCode::kBadInput);
}

}  // namespace meshwright
