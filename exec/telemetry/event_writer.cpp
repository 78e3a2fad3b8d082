// SPDX-License-Identifier: Apache-2.0
#include "exec/telemetry/event_writer.h"

#include <chrono>
#include <string>

namespace meshwright {

void EventWriter::write(Event event) {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  event.t_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot).count();
  const std::string line = to_json_line(event) + "\n";
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
}

}  // namespace meshwright
