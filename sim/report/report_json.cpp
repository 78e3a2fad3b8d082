// SPDX-License-Identifier: Apache-2.0
#include "sim/report/report_json.h"

namespace meshwright {

Json memory_to_json(const std::array<Bytes, kNumMemoryTerms>& memory) {
  Json json = Json::object();
  for (int t = 0; t < kNumMemoryTerms; ++t) {
    json[std::string(key(static_cast<MemoryTerm>(t)))] = memory[static_cast<size_t>(t)].v;
  }
  return json;
}

std::array<Bytes, kNumMemoryTerms> memory_from_json(ObjectReader& reader) {
  std::array<Bytes, kNumMemoryTerms> memory{};
  for (int t = 0; t < kNumMemoryTerms; ++t) {
    memory[static_cast<size_t>(t)] =
        Bytes{reader.number_or(std::string(key(static_cast<MemoryTerm>(t))), 0, kNonNegative)};
  }
  return memory;
}

namespace {

/// Key and member of each quantity of a bound.
struct BoundKey {
  const char* key;
  Bytes MemoryBound::*value;
};
constexpr BoundKey kBoundKeys[] = {{"upper_bound_bytes", &MemoryBound::upper},
                                   {"fragmentation_bytes", &MemoryBound::fragmentation},
                                   {"workspace_bytes", &MemoryBound::workspace},
                                   {"communicators_bytes", &MemoryBound::communicators},
                                   {"first_step_peak_bytes", &MemoryBound::first_step_peak},
                                   {"snapshot_bytes", &MemoryBound::snapshot},
                                   {"save_peak_bytes", &MemoryBound::save_peak}};

Json bound_to_json(const MemoryBound& bound) {
  Json json = {{"coverage", bound.coverage}, {"num_communicators", bound.num_communicators}};
  for (const BoundKey& k : kBoundKeys) json[k.key] = (bound.*k.value).v;
  return json;
}

Result<MemoryBound> bound_from_json(const Json& json,
                                    const std::string& origin,
                                    const std::string& pointer) {
  ObjectReader r(json, origin, pointer);
  MemoryBound bound;
  bound.coverage = r.number("coverage", kNonNegative);
  bound.num_communicators = r.number("num_communicators", kNonNegative);
  for (const BoundKey& k : kBoundKeys) bound.*k.value = Bytes{r.number(k.key, kNonNegative)};
  MW_RETURN_IF_ERROR(r.finish());
  return bound;
}

}  // namespace

Json report_to_json(const StepReport& report) {
  Json json = {{"step_time_s", report.step_time.v}, {"peak_memory_bytes", report.peak_memory.v}};
  Json terms = Json::object();
  for (int t = 0; t < kNumTerms; ++t)
    terms[std::string(key(static_cast<Term>(t)))] = report.terms[static_cast<size_t>(t)].v;
  json["terms"] = std::move(terms);
  json["memory"] = memory_to_json(report.memory);
  if (report.memory_bound) json["memory_bound"] = bound_to_json(*report.memory_bound);
  return json;
}

Result<StepReport> report_from_json(const Json& json,
                                    const std::string& origin,
                                    const std::string& pointer) {
  constexpr Range kAny{-1e24, 1e24};
  ObjectReader r(json, origin, pointer);
  StepReport report;
  report.step_time = Seconds{r.number("step_time_s", kNonNegative)};
  report.peak_memory = Bytes{r.number("peak_memory_bytes", kNonNegative)};
  const Json& terms = r.object("terms");
  const Json& memory = r.object("memory");
  const bool has_bound = r.has("memory_bound");
  const Json& bound = r.object("memory_bound", false);
  MW_RETURN_IF_ERROR(r.finish());
  ObjectReader t(terms, origin, pointer + "/terms");
  for (int i = 0; i < kNumTerms; ++i) {
    report.terms[static_cast<size_t>(i)] =
        Seconds{t.number(std::string(key(static_cast<Term>(i))), kAny)};
  }
  MW_RETURN_IF_ERROR(t.finish());
  ObjectReader m(memory, origin, pointer + "/memory");
  report.memory = memory_from_json(m);
  MW_RETURN_IF_ERROR(m.finish());
  if (has_bound) {
    MW_ASSIGN_OR_RETURN(report.memory_bound,
                        bound_from_json(bound, origin, pointer + "/memory_bound"));
  }
  return report;
}

}  // namespace meshwright
