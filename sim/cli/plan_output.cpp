// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/plan_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/cli/advice_json.h"
#include "sim/cli/advice_text.h"
#include "sim/cli/flops_option.h"
#include "sim/cli/guide_text.h"
#include "sim/core/text.h"
#include "sim/plan/plan_json.h"
#include "sim/report/report_json.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright::cli {
namespace {

Json ranked_json(const RankedPlan& ranked, const CostModel& cost, FlopDefinition flops) {
  Json json = report_to_json(ranked.simulation.report);
  json["layout"] = layout_to_json(ranked.plan);
  json["tokens_per_s"] = ranked.simulation.tokens_per_s;
  add_utilization(json,
                  ranked.plan,
                  cost.with_cluster(ranked.plan.cluster()),
                  ranked.simulation.report.step_time,
                  flops);
  json["bubble_fraction"] = ranked.simulation.bubble_fraction;
  json["capacity_bytes"] = ranked.plan.cluster().capacity().v;
  return json;
}

void print_run_estimate(const Problem& p, const RankedPlan& ranked) {
  const Simulation& best = ranked.simulation;
  constexpr double kDay = 86400.0;
  constexpr double kHour = 3600.0;
  constexpr double kTokensPerParameter =
      20.0;  // compute-optimal budget of Hoffmann et al., arXiv:2203.15556
  const double budget = p.workload.tokens.value_or(kTokensPerParameter *
                                                   static_cast<double>(parameter_count(p.model)));
  const double seconds = budget / best.tokens_per_s;
  fmt::print("\n{:.3g} tokens{} take {:.4g} {}",
             budget,
             p.workload.tokens ? "" : " (20 per parameter; set --tokens)",
             seconds >= kDay ? seconds / kDay : seconds / kHour,
             seconds >= kDay ? "days" : "hours");
  fmt::print("; cost {}\n",
             cost_text(prices_of(p.cluster), seconds / kHour * ranked.plan.world_size()));
}

void print_front(const Problem& p, const PlanAdvice& advice) {
  fmt::print("\nPareto front (no other layout is better in everything):\n");
  const DevicePrices prices = prices_of(p.cluster);
  const auto& price = prices.on_demand ? prices.on_demand : prices.spot;
  fmt::print("  {:>7} {:>10} {:>11} {:>14} {:>10}  {}\n",
             "devices",
             "step",
             "peak/rank",
             "device-s/step",
             "$/step",
             "layout");
  for (const RankedPlan& r : advice.front) {
    const StepReport& report = r.simulation.report;
    const int devices = r.plan.world_size();
    fmt::print(
        "  {:>7} {:>10} {:>11} {:>14.4g} {:>10}  {}\n",
        devices,
        show(report.step_time),
        show(report.peak_memory),
        devices * report.step_time.v,
        price ? show(cost_of_steps(1, report.step_time, devices, price->usd_per_hour)) : "unknown",
        summary(r.plan.layout()));
  }
  if (price) {
    fmt::print("  at ${:.4g} per device-hour ({}{}, {})\n",
               price->usd_per_hour,
               prices.own ? "" : "an assumption: ",
               price->source,
               price->date);
  }
}

}  // namespace

Json plan_json(const Problem& p,
               const PlannerResult& result,
               const CostModel& cost,
               const PlanAdvice& advice) {
  Json json = {{"schema_version", kOutputSchemaVersion},
               {"model",
                {{"name", p.model.name},
                 {"parameters", parameter_count(p.model)},
                 {"active_parameters", active_parameter_count(p.model)}}},
               {"cluster", {{"name", p.cluster.name}, {"devices", p.cluster.num_devices}}},
               {"workload",
                {{"name", p.workload.name},
                 {"seq_len", p.workload.seq_len},
                 {"global_batch_sequences", p.workload.global_batch},
                 {"tokens_per_step", p.workload.tokens_per_step()}}},
               {"priced_by", cost.provenance()},
               {"examined", result.examined},
               {"feasible", result.feasible},
               {"elapsed_s", result.elapsed_s},
               {"plans", Json::array()},
               {"rejected", Json::array()}};
  for (const RankedPlan& r : result.plans)
    json["plans"].push_back(ranked_json(r, cost, advice.flops));
  json["counterfactuals"] = Json::array();
  for (const Challenge& c : advice.challenges) json["counterfactuals"].push_back(advice_json(c));
  json["with_more_memory"] = Json::array();
  for (const MemoryChallenge& m : advice.more_memory)
    json["with_more_memory"].push_back(advice_json(m));
  const DevicePrices prices = prices_of(p.cluster);
  json["usd_per_device_hour"] = {
      {"on_demand", prices.on_demand ? Json(prices.on_demand->usd_per_hour) : Json(nullptr)},
      {"spot", prices.spot ? Json(prices.spot->usd_per_hour) : Json(nullptr)},
      {"assumed", !prices.own}};
  if (!advice.front.empty()) {
    json["pareto"] = Json::array();
    for (const RankedPlan& r : advice.front) {
      Json point = ranked_json(r, cost, advice.flops);
      point["devices"] = r.plan.world_size();
      const auto dollars = [&](const std::optional<DevicePrice>& price) {
        return price ? Json(cost_of_steps(1,
                                          r.simulation.report.step_time,
                                          r.plan.world_size(),
                                          price->usd_per_hour)
                                .v)
                     : Json(nullptr);
      };
      point["on_demand_usd_per_step"] = dollars(prices.on_demand);
      point["spot_usd_per_step"] = dollars(prices.spot);
      json["pareto"].push_back(std::move(point));
    }
  }
  for (const Rejection& r : result.rejected) {
    json["rejected"].push_back({{"rule", r.rule}, {"count", r.count}, {"example", r.example}});
  }
  return json;
}

void print_plan(const Problem& p,
                const PlannerResult& result,
                const CostModel& cost,
                const PlanAdvice& advice) {
  fmt::print("{}\npriced by {}\n", job_text(p), cost.provenance());
  fmt::print("examined {} layouts in {:.2f} s: {} fit, {} rejected\n\n",
             result.examined,
             result.elapsed_s,
             result.feasible,
             result.examined - result.feasible);
  const std::string utilization = utilization_name(advice.flops);
  const size_t width = std::max<size_t>(6, utilization.size());
  fmt::print("{:>2}  {:<44} {:>10} {:>12} {:>{}} {:>7} {:>11} {:>11}  {}\n",
             "#",
             "layout",
             "step",
             "tokens/s",
             utilization,
             width,
             "bubble",
             "peak/rank",
             "at most",
             "loses to #1 by");
  for (size_t i = 0; i < result.plans.size(); ++i) {
    const RankedPlan& r = result.plans[i];
    std::string why;
    if (i > 0) {
      if (const auto d = deciding_term(result.plans[0].simulation.report, r.simulation.report)) {
        why = fmt::format("{} of {}", show(d->difference), key(d->term));
      }
    }
    fmt::print("{:>2}  {:<44} {:>10} {:>12.0f} {:>{}.1f}% {:>6.1f}% {:>11} {:>11}  {}\n",
               i + 1,
               summary(r.plan.layout()),
               show(r.simulation.report.step_time),
               r.simulation.tokens_per_s,
               100 * utilization_value(meshwright::utilization(r.plan,
                                                               cost.with_cluster(r.plan.cluster()),
                                                               r.simulation.report.step_time,
                                                               advice.flops),
                                       advice.flops),
               width - 1,
               100 * r.simulation.bubble_fraction,
               show(r.simulation.report.peak_memory),
               show(r.simulation.report.memory_bound->upper),
               why);
  }
  fmt::print("{}\n", utilization_legend(advice.flops));
  if (!advice.front.empty()) print_front(p, advice);
  if (!advice.challenges.empty()) {
    fmt::print(
        "\nrunner-ups of another kind, and what would have to be different for each to win:\n{}",
        challenges_text(result.plans.front(), advice.challenges));
  }
  if (!advice.more_memory.empty()) {
    fmt::print("\nwith more memory:\n{}",
               memory_challenges_text(result.plans.front(), advice.more_memory));
  }
  if (!result.rejected.empty()) {
    fmt::print("\nrejected:\n");
    for (const Rejection& r : result.rejected)
      fmt::print("{:>8}  {}\n          e.g. {}\n", r.count, r.rule, r.example);
  }
  if (!result.plans.empty()) print_run_estimate(p, result.plans.front());
}

}  // namespace meshwright::cli
