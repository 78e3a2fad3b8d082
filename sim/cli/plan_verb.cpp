// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/cli/flops_option.h"
#include "sim/cli/plan_output.h"
#include "sim/cli/verbs.h"
#include "sim/core/clock.h"
#include "sim/core/version.h"
#include "sim/plan/executor_support.h"
#include "sim/plan/plan_file.h"
#include "sim/planner/objective.h"
#include "sim/planner/pareto.h"

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

/// Runner-ups of other kinds that the short text shows.
constexpr size_t kChallengers = 3;
/// Times the memory of a device that are asked about.
constexpr double kMemoryFactors[] = {1.25, 2, 4};
/// Peaks that differ by less than this are one choice of the front.
constexpr double kFrontGrain = 0.02;
constexpr size_t kFrontLayouts = 40;
constexpr double kPercent = 100;

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
    options.replay_all = o.pareto;
    result = plan_for(objective, problem, cost, options, static_cast<double>(slack) / kPercent);
  }
  if (result.plans.empty()) return explain_nothing(problem, result, o, json);
  if (objective == Objective::kTime) add_counterfactuals(advice, result, cost);
  if (o.pareto) add_front(advice, objective, result, cost);
  if (json) {
    print_json(plan_json(*problem, result, cost, advice));
  } else {
    print_plan(*problem, result, cost, advice);
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
