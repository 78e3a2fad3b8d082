// Wall-clock time for provenance.
#pragma once

#include <ctime>
#include <string>

namespace meshwright {

/// ISO 8601 in UTC, to the second: "2026-11-30T12:00:00Z".
[[nodiscard]] inline std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace meshwright
