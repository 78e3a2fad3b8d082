// SPDX-License-Identifier: Apache-2.0
#include "sim/report/rank_report.h"

#include <algorithm>

#include "sim/report/report_json.h"

namespace meshwright {
namespace {

constexpr Range kIndex{-1, 1e9};
constexpr Range kClock{-1e12, 1e12};

Json span_to_json(const Span& s) {
  return Json::array({static_cast<int>(s.action.kind),
                      static_cast<int>(s.action.direction),
                      s.action.micro_batch,
                      s.action.block_begin,
                      s.action.block_end,
                      s.action.bucket,
                      s.action.virtual_stage,
                      s.action.peer,
                      s.action.peer_stage,
                      s.start_s,
                      s.end_s,
                      s.compute_s,
                      s.comm_s});
}

bool span_from_json(const Json& j, Span& s) {
  constexpr size_t kFields = 13;
  if (!j.is_array() || j.size() != kFields) return false;
  if (!std::all_of(j.begin(), j.end(), [](const Json& x) { return x.is_number(); })) return false;
  const int kind = j[0].get<int>();
  const int direction = j[1].get<int>();
  if (kind < 0 || kind >= kNumActionKinds || direction < 0 || direction > 1) return false;
  s.action = {.kind = static_cast<ActionKind>(kind),
              .direction = static_cast<Direction>(direction),
              .micro_batch = j[2].get<int>(),
              .block_begin = j[3].get<int>(),
              .block_end = j[4].get<int>(),
              .bucket = j[5].get<int>(),
              .virtual_stage = j[6].get<int>(),
              .peer = j[7].get<int>(),
              .peer_stage = j[8].get<int>()};
  s.start_s = j[9].get<double>();
  s.end_s = j[10].get<double>();
  s.compute_s = j[11].get<double>();
  s.comm_s = j[12].get<double>();
  return true;
}

std::vector<double> numbers(ObjectReader& r, const std::string& key) {
  std::vector<double> out;
  for (const Json& x : r.array(key)) {
    if (x.is_null()) {
      out.push_back(std::numeric_limits<double>::quiet_NaN());  // a loss that was not finite
    } else if (x.is_number()) {
      out.push_back(x.get<double>());
    } else {
      r.fail(key, x.dump(), "must hold numbers");
    }
  }
  return out;
}

}  // namespace

std::string to_json_text(const RankReport& report) {
  Json spans = Json::array();
  for (const Span& s : report.timeline.spans) spans.push_back(span_to_json(s));
  return Json{{"schema_version", 1},
              {"rank", report.rank},
              {"plan_hash", report.plan_hash},
              {"loss", report.loss},
              {"step_time_s", report.step_time_s},
              {"median_step", report.median_step},
              {"peak_memory_bytes", report.peak_memory.v},
              {"memory", memory_to_json(report.memory)},
              {"step_start_s", report.timeline.step_start_s},
              {"step_end_s", report.timeline.step_end_s},
              {"spans", std::move(spans)}}
      .dump();
}

Result<RankReport> parse_rank_report(std::string_view text, const std::string& origin) {
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, origin));
  ObjectReader r(json, origin);
  RankReport report;
  r.integer("schema_version", {1, 1});
  report.rank = static_cast<int>(r.integer("rank", {0, 1e6}));
  report.plan_hash = r.text("plan_hash");
  report.loss = numbers(r, "loss");
  report.step_time_s = numbers(r, "step_time_s");
  report.median_step = static_cast<int>(r.integer("median_step", kIndex));
  report.peak_memory = Bytes{r.number("peak_memory_bytes", kNonNegative)};
  ObjectReader memory(r.object("memory"), origin, "/memory");
  report.memory = memory_from_json(memory);
  report.timeline.rank = report.rank;
  report.timeline.step_start_s = r.number("step_start_s", kClock);
  report.timeline.step_end_s = r.number("step_end_s", kClock);
  for (const Json& j : r.array("spans")) {
    Span span;
    if (!span_from_json(j, span)) {
      r.fail("spans", j.dump(), "is not a span");
      break;
    }
    report.timeline.spans.push_back(span);
  }
  MW_RETURN_IF_ERROR(r.finish());
  MW_RETURN_IF_ERROR(memory.finish());
  return report;
}

StepReport measured_report(const std::vector<RankReport>& ranks, const Mesh& mesh) {
  MW_CHECK(!ranks.empty());
  Timeline timeline;
  for (const RankReport& r : ranks) timeline.ranks.push_back(r.timeline);
  StepReport report = terms_of_slowest_rank(timeline, mesh);
  const auto peak =
      std::max_element(ranks.begin(), ranks.end(), [](const RankReport& a, const RankReport& b) {
        return a.peak_memory < b.peak_memory;
      });
  report.peak_memory = peak->peak_memory;
  report.memory = peak->memory;
  return report;
}

}  // namespace meshwright
