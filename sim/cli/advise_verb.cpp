// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sim/advice/rule_checks.h"
#include "sim/cli/advice_json.h"
#include "sim/cli/advice_text.h"
#include "sim/cli/guide_text.h"
#include "sim/cli/verbs.h"
#include "sim/core/text.h"
#include "sim/plan/plan_json.h"

namespace meshwright::cli {
namespace {

struct AdviseOptions {
  ProblemOptions problem;
  bool devices = false;
};

Result<int> run_advise(const AdviseOptions& o, bool json, const Environment& env) {
  MW_ASSIGN_OR_RETURN(const auto problem, o.problem.load(env));
  MW_ASSIGN_OR_RETURN(
      const CostModel cost,
      load_cost_model(problem->cluster, o.problem.calibration, o.problem.force, env));
  PlannerOptions options{.top_k = 1, .pins = {}, .progress = {}};
  options.keep_feasible = options.replay_all = true;
  MW_ASSIGN_OR_RETURN(options.pins, o.problem.pins());
  PlannerResult found;
  DecisionFlow flow;
  std::vector<DeviceRow> guide;
  {
    ProgressLine line(env.interactive);
    options.progress = [&](int64_t done, int64_t total) {
      line.show(fmt::format("examined {} of {} layouts", done, total));
    };
    found = plan_layouts(problem, cost, options);
    flow = decide(problem, cost, options.pins, found);
    if (o.devices) {
      guide = hardware_guide(*problem, options.pins, [&](const std::string& device) {
        line.show("planning on " + device);
      });
    }
  }
  const RankedPlan* winner = found.plans.empty() ? nullptr : &found.plans.front();
  if (json) {
    Json document = {{"schema_version", kOutputSchemaVersion},
                     {"model", problem->model.name},
                     {"cluster", problem->cluster.name},
                     {"priced_by", cost.provenance()},
                     {"decision_flow", advice_json(flow)},
                     {"winner", nullptr},
                     {"rules", Json::array()}};
    if (winner != nullptr) {
      document["winner"] = {{"layout", layout_to_json(winner->plan)},
                            {"step_time_s", winner->simulation.report.step_time.v},
                            {"peak_memory_bytes", winner->simulation.report.peak_memory.v}};
      document["rules"] = advice_json(check_rules(*winner, cost, flow));
    }
    if (o.devices) document["devices"] = advice_json(guide);
    print_json(document);
  } else {
    fmt::print("{}\npriced by {}\n", job_text(*problem), cost.provenance());
    fmt::print("\nthe rule book's choice:\n{}", flow_text(flow, winner));
    if (winner != nullptr) {
      fmt::print("\nrules of thumb, checked on {}:\n{}",
                 summary(winner->plan.layout()),
                 rules_text(check_rules(*winner, cost, flow)));
    }
    if (o.devices) {
      fmt::print("\nthe same job on {} of each built-in device, fastest first:\n{}",
                 problem->cluster.num_devices,
                 guide_text(guide));
    }
  }
  return winner != nullptr || flow.best ? 0 : static_cast<int>(ErrorCode::kNegative);
}

}  // namespace

Verb advise_verb(CLI::App& app, const Environment& env) {
  Verb verb = make_verb(
      app, "advise", "The rule book on your numbers, and what the search says; devices compared");
  auto o = std::make_shared<AdviseOptions>();
  o->problem.add_to(*verb.app);
  verb.app->add_flag(
      "--devices", o->devices, "Plan for as many of each built-in device: step time, memory, cost");
  verb.run = [o, json = verb.json, &env] { return run_advise(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
