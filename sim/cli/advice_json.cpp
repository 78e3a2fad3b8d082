// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/advice_json.h"

#include "sim/plan/plan_json.h"

namespace meshwright::cli {
namespace {

Json tokens_or_null(const std::optional<double>& x) { return x ? Json(*x) : Json(nullptr); }

/// A knob's value in the unit of its key.
double in_unit(Knob knob, double value) {
  return knob == Knob::kInterNodeBandwidth ? value / 1e9 : value;
}

Json price_json(const std::optional<DevicePrice>& price) {
  if (!price) return nullptr;
  return {{"usd_per_device_hour", price->usd_per_hour},
          {"source", price->source},
          {"date", price->date}};
}

Json dollars_or_null(const std::optional<Dollars>& x) { return x ? Json(x->v) : Json(nullptr); }

}  // namespace

Json advice_json(const Challenge& c) {
  Json json = {{"layout", layout_to_json(c.plan.plan)},
               {"step_time_s", c.plan.simulation.report.step_time.v},
               {"peak_memory_bytes", c.plan.simulation.report.peak_memory.v},
               {"differs_in", c.differs_in},
               {"crossings", Json::array()}};
  for (const Crossing& x : c.crossings) {
    json["crossings"].push_back(
        {{"knob", key(x.knob)},
         {"direction", x.upwards ? "more" : "less"},
         {"now", in_unit(x.knob, x.now)},
         {"bound", in_unit(x.knob, x.bound)},
         {"wins_at", x.flip ? Json(in_unit(x.knob, *x.flip)) : Json(nullptr)}});
  }
  return json;
}

Json advice_json(const MemoryChallenge& m) {
  return {{"layout", layout_to_json(m.plan)},
          {"step_time_s", m.step_time.v},
          {"device_memory_bytes", m.needed.v}};
}

Json advice_json(const Diagnosis& d) {
  Json json = {{"findings", Json::array()}, {"passed", d.passed}};
  for (const Finding& f : d.findings) {
    Json remedies = Json::array();
    for (const Remedy& r : f.remedies) {
      Json remedy = {{"action", r.action}};
      if (r.result) {
        remedy["layout"] = layout_to_json(r.result->plan);
        remedy["tokens_per_step"] = r.result->plan.workload().tokens_per_step();
        remedy["step_time_s"] = r.result->step_time.v;
        remedy["peak_memory_bytes"] = r.result->peak.v;
        remedy["fits"] = r.result->fits();
      } else {
        remedy["effect"] = r.effect;
      }
      remedies.push_back(std::move(remedy));
    }
    json["findings"].push_back({{"id", f.id},
                                {"value", f.value},
                                {"threshold", f.threshold},
                                {"text", f.text},
                                {"cause", f.cause},
                                {"note", f.note},
                                {"remedies", std::move(remedies)}});
  }
  return json;
}

Json advice_json(const DecisionFlow& flow) {
  Json json = {{"strategy", to_string(flow.strategy)}, {"steps", Json::array()}, {"best", nullptr}};
  for (const FlowStep& s : flow.steps) {
    json["steps"].push_back({{"question", s.question},
                             {"answer", s.yes},
                             {"leads_to", to_string(s.leads_to)},
                             {"needed_bytes", s.needed.v},
                             {"available_bytes", s.available.v},
                             {"evidence", s.evidence},
                             {"note", s.note}});
  }
  if (flow.best) {
    json["best"] = {{"layout", layout_to_json(flow.best->plan)},
                    {"step_time_s", flow.best->simulation.report.step_time.v},
                    {"peak_memory_bytes", flow.best->simulation.report.peak_memory.v}};
  }
  return json;
}

Json advice_json(const std::vector<RuleCheck>& checks) {
  Json json = Json::array();
  for (const RuleCheck& c : checks) {
    json.push_back(
        {{"rule", c.rule}, {"holds", c.holds}, {"figures", c.figures}, {"note", c.note}});
  }
  return json;
}

Json advice_json(const std::vector<DeviceRow>& rows) {
  Json json = Json::array();
  for (const DeviceRow& r : rows) {
    Json row = {{"device", r.cluster.device.name},
                {"devices", r.cluster.num_devices},
                {"capacity_bytes", r.cluster.capacity().v},
                {"fits", r.best.has_value()},
                {"on_demand", price_json(r.prices.on_demand)},
                {"spot", price_json(r.prices.spot)}};
    if (r.best) {
      row["layout"] = layout_to_json(r.best->plan);
      row["step_time_s"] = r.best->simulation.report.step_time.v;
      row["peak_memory_bytes"] = r.best->simulation.report.peak_memory.v;
      row["on_demand_usd_per_step"] = dollars_or_null(r.per_step(r.prices.on_demand));
      row["spot_usd_per_step"] = dollars_or_null(r.per_step(r.prices.spot));
      row["on_demand_tokens_per_usd"] = tokens_or_null(r.tokens_per_dollar(r.prices.on_demand));
      row["spot_tokens_per_usd"] = tokens_or_null(r.tokens_per_dollar(r.prices.spot));
    } else {
      row["least_peak_bytes"] = r.least.v > 0 ? Json(r.least.v) : Json(nullptr);
    }
    json.push_back(std::move(row));
  }
  return json;
}

}  // namespace meshwright::cli
