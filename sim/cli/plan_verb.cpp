// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/cli/advice_json.h"
#include "sim/cli/advice_text.h"
#include "sim/cli/flops_option.h"
#include "sim/cli/verbs.h"
#include "sim/core/clock.h"
#include "sim/core/version.h"
#include "sim/plan/executor_support.h"
#include "sim/plan/plan_file.h"
#include "sim/plan/plan_json.h"
#include "sim/planner/objective.h"
#include "sim/planner/pareto.h"
#include "sim/report/report_json.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright::cli {
namespace {

struct PlanOptions {
  ProblemOptions problem;
  std::string top = "5";
  std::string objective = "time";
  std::string slack = "15";
  std::string flops = "model";
  bool pareto = false;
  std::string output;
};

/// What is shown beside the ranking.
struct PlanAdvice {
  FlopDefinition flops = FlopDefinition::kModel;
  std::vector<Challenge> challenges;
  std::vector<MemoryChallenge> more_memory;
  std::vector<RankedPlan> front;
};

/// Runner-ups of other kinds that the short text shows.
constexpr size_t kChallengers = 3;
/// Times the memory of a device that are asked about.
constexpr double kMemoryFactors[] = {1.25, 2, 4};
/// Peaks that differ by less than this are one choice of the front.
constexpr double kFrontGrain = 0.02;
constexpr size_t kFrontLayouts = 40;
constexpr double kPercent = 100;

Json to_json(const RankedPlan& ranked, const CostModel& cost, FlopDefinition flops) {
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

Json to_json(const Problem& p,
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
  for (const RankedPlan& r : result.plans) json["plans"].push_back(to_json(r, cost, advice.flops));
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
      Json point = to_json(r, cost, advice.flops);
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

void print_run_estimate(const Problem& p, const RankedPlan& ranked) {
  const Simulation& best = ranked.simulation;
  constexpr double kDay = 86400.0;
  constexpr double kHour = 3600.0;
  constexpr double kTokensPerParameter =
      20.0;  // compute-optimal budget of Hoffmann et al., arXiv:2203.15556
  const double budget = p.workload.tokens.value_or(kTokensPerParameter *
                                                   static_cast<double>(parameter_count(p.model)));
  const double seconds = budget / best.tokens_per_s;
  fmt::print("\n{:.3g} tokens{} take {:.3g} {}",
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

void print_text(const Problem& p,
                const PlannerResult& result,
                const CostModel& cost,
                const PlanAdvice& advice) {
  fmt::print("{} ({:.4g} B parameters) on {}, {}: {} sequences of {} tokens per step\n",
             p.model.name,
             static_cast<double>(parameter_count(p.model)) / 1e9,
             p.cluster.name,
             p.workload.name,
             p.workload.global_batch,
             p.workload.seq_len);
  fmt::print("priced by {}\n", cost.provenance());
  fmt::print("examined {} layouts in {:.2f} s: {} fit, {} rejected\n\n",
             result.examined,
             result.elapsed_s,
             result.feasible,
             result.examined - result.feasible);
  const std::string utilization = utilization_name(advice.flops);
  const size_t width = std::max<size_t>(6, utilization.size());
  fmt::print("{:>2}  {:<44} {:>10} {:>12} {:>{}} {:>7} {:>11}  {}\n",
             "#",
             "layout",
             "step",
             "tokens/s",
             utilization,
             width,
             "bubble",
             "peak/rank",
             "loses to #1 by");
  for (size_t i = 0; i < result.plans.size(); ++i) {
    const RankedPlan& r = result.plans[i];
    std::string why;
    if (i > 0) {
      if (const auto d = deciding_term(result.plans[0].simulation.report, r.simulation.report)) {
        why = fmt::format("{} of {}", show(d->difference), key(d->term));
      }
    }
    fmt::print("{:>2}  {:<44} {:>10} {:>12.0f} {:>{}.1f}% {:>6.1f}% {:>11}  {}\n",
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

/// Nothing is feasible: a pinned layout that breaks a rule, or a workload that no layout can run,
/// is bad input; too little memory is an answer.
int explain_nothing(std::shared_ptr<const Problem> problem,
                    const PlannerResult& result,
                    const PlanOptions& o,
                    bool json) {
  const bool pinned = !o.problem.layout.empty() || !o.problem.stages.empty();
  const bool memory_only =
      std::any_of(result.rejected.begin(), result.rejected.end(), [](const Rejection& r) {
        return r.rule.starts_with("memory:");
      });
  const auto pins = o.problem.pins();
  const std::vector<Layout> layouts = enumerate_layouts(*problem, *pins);
  std::vector<Error> errors;
  if (!layouts.empty()) {
    const ValidationOutcome outcome = validate(problem, layouts.front());
    errors = outcome.violations;
    if (outcome.plan && problem->cluster.is_local()) {
      if (const auto refusal = executor_refuses(*outcome.plan)) errors.push_back(*refusal);
    }
  }
  if (!pinned)
    std::erase_if(errors,
                  [](const Error& e) { return e.field != "seq_len" && e.field != "precision"; });
  if (!memory_only && (pinned || !errors.empty())) {
    if (errors.empty()) {
      errors.push_back(Error{.where = "--layout",
                             .field = "layout",
                             .value = o.problem.layout,
                             .rule = "has no legal completion on this cluster",
                             .remedy = fmt::format("the degrees must multiply to {} devices",
                                                   problem->cluster.num_devices)});
    }
    print_errors(errors, json);
    return static_cast<int>(ErrorCode::kBadInput);
  }
  Error e{.code = ErrorCode::kNegative,
          .where = "plan",
          .field = "layouts",
          .value = fmt::format("{} examined", result.examined),
          .rule = "nothing fits",
          .remedy = "add devices, allow recompute, or shorten the sequence"};
  if (!result.rejected.empty())
    e.rule += ": " + result.rejected.front().rule + " (" + result.rejected.front().example + ")";
  if (!json) {
    for (const Rejection& r : result.rejected)
      fmt::print(stderr, "{:>8}  {}\n          e.g. {}\n", r.count, r.rule, r.example);
  }
  print_errors({e}, json);
  return static_cast<int>(ErrorCode::kNegative);
}

Result<Objective> parse_objective(const std::string& word) {
  if (word == "time") return Objective::kTime;
  if (word == "cost") return Objective::kCost;
  if (word == "gpus") return Objective::kGpus;
  if (word == "memory") return Objective::kMemory;
  return Error{.where = "--objective",
               .field = "objective",
               .value = word,
               .rule = "must be time, cost, gpus or memory"};
}

/// Counterfactuals compare times: they belong to the fastest layout of one cluster.
void add_counterfactuals(PlanAdvice& advice, const PlannerResult& result, const CostModel& cost) {
  const RankedPlan& winner = result.plans.front();
  for (const RankedPlan& other : challengers(result.all_feasible, winner, cost, kChallengers))
    advice.challenges.push_back(challenge(winner, other, cost));
  if (winner.plan.cluster().is_local()) return;
  for (const double factor : kMemoryFactors) {
    const auto m = with_more_memory(winner, cost, factor);
    if (m && (advice.more_memory.empty() || m->step_time < advice.more_memory.back().step_time))
      advice.more_memory.push_back(*m);
  }
}

void add_front(PlanAdvice& advice,
               Objective objective,
               const PlannerResult& result,
               const CostModel& cost) {
  const FrontAxis axis = objective == Objective::kGpus   ? FrontAxis::kDevices
                         : objective == Objective::kCost ? FrontAxis::kDeviceTime
                                                         : FrontAxis::kNone;
  advice.front = simulated_front(result.all_feasible, cost, axis, kFrontGrain, kFrontLayouts);
}

/// A search is not thrown away because its file has nowhere to go.
Result<Ok> check_output_folder(const std::string& path) {
  std::error_code ec;
  const auto folder = std::filesystem::path(path).parent_path();
  if (path.empty() || folder.empty() || std::filesystem::is_directory(folder, ec)) return Ok{};
  return Error{.where = "--output",
               .field = "output",
               .value = path,
               .rule = "is in a folder that does not exist",
               .remedy = "make " + folder.string()};
}

Result<int> run_plan(const PlanOptions& o, bool json, const Environment& env) {
  MW_ASSIGN_OR_RETURN(const Objective objective, parse_objective(o.objective));
  PlanAdvice advice;
  MW_ASSIGN_OR_RETURN(advice.flops, parse_flops(o.flops));
  MW_ASSIGN_OR_RETURN(const int64_t slack, parse_count("--slack", o.slack, 0, 1000));
  MW_RETURN_IF_ERROR(check_output_folder(o.output));
  MW_ASSIGN_OR_RETURN(const int64_t top, parse_count("--top", o.top, 1, 1000));
  MW_ASSIGN_OR_RETURN(const auto problem, o.problem.load(env));
  MW_ASSIGN_OR_RETURN(
      const CostModel cost,
      load_cost_model(problem->cluster, o.problem.calibration, o.problem.force, env));
  PlannerOptions options{.top_k = static_cast<int>(top), .pins = {}, .progress = {}};
  MW_ASSIGN_OR_RETURN(options.pins, o.problem.pins());
  PlannerResult result;
  {
    ProgressLine line(env.interactive);
    options.progress = [&](int64_t done, int64_t total) {
      line.show(fmt::format("examined {} of {} layouts", done, total));
    };
    options.keep_feasible = o.pareto || objective == Objective::kTime;
    result = plan_for(objective, problem, cost, options, static_cast<double>(slack) / kPercent);
  }
  if (result.plans.empty()) return explain_nothing(problem, result, o, json);
  if (objective == Objective::kTime) add_counterfactuals(advice, result, cost);
  if (o.pareto) add_front(advice, objective, result, cost);
  if (json) {
    print_json(to_json(*problem, result, cost, advice));
  } else {
    print_text(*problem, result, cost, advice);
  }
  if (!o.output.empty()) {
    const RankedPlan& best = result.plans.front();
    MW_RETURN_IF_ERROR(
        write_plan_file(o.output,
                        {.plan = best.plan,
                         .hash = plan_hash(best.plan),
                         .predicted = best.simulation.report,
                         .provenance = {kVersion, utc_now(), cost.calibration_id()}}));
    fmt::print(stderr, "wrote the best plan to {}\n", o.output);
  }
  return 0;
}

}  // namespace

Verb plan_verb(CLI::App& app, const Environment& env) {
  Verb verb =
      make_verb(app, "plan", "The best layouts for a model on a cluster, and why the others lose");
  auto o = std::make_shared<PlanOptions>();
  o->problem.add_to(*verb.app);
  verb.app->add_option("--top", o->top, "How many layouts to show")->capture_default_str();
  verb.app
      ->add_option(
          "--objective",
          o->objective,
          "time: fastest on the whole cluster; cost: least device time; gpus: fewest devices; "
          "memory: smallest peak of the layouts within --slack of the fastest")
      ->capture_default_str();
  verb.app
      ->add_option(
          "--slack", o->slack, "Percent of the fastest step that --objective memory may give away")
      ->capture_default_str();
  verb.app->add_flag("--pareto",
                     o->pareto,
                     "Also the Pareto front over step time and peak memory; with --objective cost "
                     "or gpus over sizes of the cluster too");
  add_flops_option(*verb.app, o->flops);
  verb.app->add_option("-o,--output", o->output, "Write the best plan to this file");
  verb.run = [o, json = verb.json, &env] { return run_plan(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
