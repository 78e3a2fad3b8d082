// EventWriter: this rank's side of the worker event protocol.
#pragma once

#include <cstdio>

#include "sim/protocol/events.h"

namespace meshwright {

/// Writes one JSON line per event and flushes it, so that a reader sees it at once. Not
/// thread-safe.
class EventWriter {
 public:
  /// `out` is not owned.
  EventWriter(int rank, std::FILE* out) : rank_(rank), out_(out) {}

  template <class Body>
  void emit(Body body) {
    write(Event{.t_ns = 0, .rank = rank_, .body = std::move(body)});
  }

 private:
  void write(Event event);  ///< Stamps t_ns.

  int rank_;
  std::FILE* out_;
};

}  // namespace meshwright
