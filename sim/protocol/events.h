// The worker event protocol: what a worker says on stdout, one JSON object a line.
//
// Why lines of JSON: a file of them is a run's log (events.jsonl), any tool can read it, and a
// worker that dies loses at most its last line. Written by: meshwright-worker. Read by:
// sim/launch/launcher.h, `meshwright compare`, the GUI.
//
//   {"v":1,"type":"step","t_ns":123,"rank":0,"step":7,"loss":2.5,"tokens":4096}
//
// Rules: `v` is the protocol's major version, now 1; another one is an error. Unknown types, and
// unknown keys of known types, are ignored: that is how version 1 grows. An optional field that is
// unknown is left out (a reader also takes null), never 0 or -1.
// JSON has no NaN or infinity, yet a loss that became NaN is exactly what a reader must see. So a
// non-finite number is null plus a neighbour that names it:
//   "loss":null,"loss_nonfinite":"nan"     (or "inf", "-inf")
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "sim/core/result.h"

namespace meshwright {

inline constexpr int kEventMajorVersion = 1;

/// The rank has read its plan and joined the job.
struct StartedEvent {
  std::string plan_hash;
  int world = 0;  ///< World size, >= 1.
  bool operator==(const StartedEvent&) const = default;
};

/// One optimizer step is done.
struct StepEvent {
  int64_t step = 0;  ///< >= 0.
  std::optional<double> loss;
  std::optional<double> grad_norm;
  std::optional<double> lr;
  std::optional<int64_t> tokens;  ///< Tokens of this step over all ranks.
  std::optional<double> step_time_s;
  std::optional<int64_t> peak_memory_bytes;
  bool operator==(const StepEvent&) const = default;
};

/// Something that a person should know and that does not stop the run.
struct WarningEvent {
  std::string code;  ///< A stable identifier such as "loss_not_finite".
  std::string message;
  bool operator==(const WarningEvent&) const = default;
};

/// A checkpoint is complete on disk.
struct CheckpointEvent {
  int64_t step = 0;
  std::string path;
  std::optional<double> seconds;  ///< Time it took.
  bool operator==(const CheckpointEvent&) const = default;
};

/// The rank gives up; its exit follows. The failing rank is Event::rank.
struct FailedEvent {
  std::string code;  ///< A stable identifier such as "bad_input" or "out_of_memory".
  std::optional<int64_t> step;
  std::optional<std::string> action;  ///< The action that was running, e.g. "F(s0,m1)".
  std::string message;
  bool operator==(const FailedEvent&) const = default;
};

/// The rank has done all its steps.
struct FinishedEvent {
  int64_t steps = 0;
  /// The measured report as JSON text of an object. It stands in the line as an object, so a reader
  /// gets the same document but not always the same spelling.
  std::optional<std::string> report_json;
  bool operator==(const FinishedEvent&) const = default;
};

/// One line of the protocol.
struct Event {
  int64_t t_ns = 0;  ///< On a clock that all ranks of one machine share.
  int rank = 0;      ///< The rank that speaks, >= 0.
  std::variant<StartedEvent, StepEvent, WarningEvent, CheckpointEvent, FailedEvent, FinishedEvent>
      body;
  bool operator==(const Event&) const = default;
};

/// The event's line, without a newline, never with one inside. Bytes that are no UTF-8 become
/// U+FFFD. A `report_json` that is not the text of a JSON object aborts (MW_CHECK). Thread-safe.
[[nodiscard]] std::string to_json_line(const Event& event);

/// Reads one line (a trailing newline is allowed).
///
/// @return  The event; nullopt for a type that this version does not know.
///          kBadInput: not JSON (field "column" says where), not an object, another major version,
///          or a required field that is missing, of another type or out of range. Thread-safe.
[[nodiscard]] Result<std::optional<Event>> parse_event(std::string_view line);

}  // namespace meshwright
