// SPDX-License-Identifier: Apache-2.0
#include "sim/report/timeline.h"

#include <fmt/format.h>

#include "sim/core/json_reader.h"

namespace meshwright {

std::string to_chrome_trace(const Timeline& timeline, const Mesh& mesh) {
  double origin = 0;
  for (size_t i = 0; i < timeline.ranks.size(); ++i) {
    const double start = timeline.ranks[i].step_start_s;
    origin = i == 0 ? start : std::min(origin, start);
  }
  Json events = Json::array();
  for (const RankTimeline& r : timeline.ranks) {
    const int stage = mesh.coord(r.rank).pp;
    events.push_back({{"ph", "M"},
                      {"pid", 0},
                      {"tid", r.rank},
                      {"name", "thread_name"},
                      {"args", {{"name", fmt::format("rank {} (stage {})", r.rank, stage)}}}});
    for (const Span& s : r.spans) {
      events.push_back(
          {{"ph", "X"},
           {"pid", 0},
           {"tid", r.rank},
           {"cat", to_string(s.action.kind)},
           {"name", to_string(s.action, stage)},
           {"ts", (s.start_s - origin) * 1e6},
           {"dur", (s.end_s - s.start_s) * 1e6},
           {"args",
            {{"compute_us", s.compute_s * 1e6}, {"comm_us", (s.comm_s + s.cp_s + s.ep_s) * 1e6}}}});
    }
  }
  return Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump();
}

}  // namespace meshwright
