// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sim/cli/flops_option.h"
#include "sim/cli/report_text.h"
#include "sim/cli/verbs.h"
#include "sim/plan/plan_file.h"
#include "sim/plan/plan_json.h"
#include "sim/report/report_json.h"
#include "sim/simulator/simulate.h"

namespace meshwright::cli {
namespace {

struct SimulateOptions {
  std::string plan, calibration, trace;
  std::string flops = "model";
  bool force = false;
};

Result<int> run_simulate(const SimulateOptions& o, bool json, const Environment& env) {
  MW_ASSIGN_OR_RETURN(const FlopDefinition flops, parse_flops(o.flops));
  MW_ASSIGN_OR_RETURN(const PlanFile file, read_plan_file(o.plan));
  MW_ASSIGN_OR_RETURN(const CostModel cost,
                      load_cost_model(file.plan.cluster(), o.calibration, o.force, env));
  const Simulation s = simulate(file.plan, cost);
  if (!o.trace.empty()) {
    MW_RETURN_IF_ERROR(
        write_text_file(o.trace, to_chrome_trace(s.timeline, Mesh(file.plan.layout()))));
    fmt::print(
        stderr, "wrote the timeline to {} (open in Perfetto or chrome://tracing)\n", o.trace);
  }
  if (json) {
    Json document = report_to_json(s.report);
    document["schema_version"] = kOutputSchemaVersion;
    document["plan_hash"] = file.hash;
    document["layout"] = layout_to_json(file.plan);
    document["tokens_per_s"] = s.tokens_per_s;
    add_utilization(document, file.plan, cost, s.report.step_time, flops);
    document["bubble_fraction"] = s.bubble_fraction;
    document["capacity_bytes"] = file.plan.cluster().capacity().v;
    document["priced_by"] = cost.provenance();
    print_json(document);
  } else {
    const Utilization u = utilization(file.plan, cost, s.report.step_time, flops);
    fmt::print("{}\nstep {}, {:.0f} tokens/s, {} {:.1f} %, bubble {:.1f} % (priced by {})\n{}\n\n",
               summary(file.plan.layout()),
               show(s.report.step_time),
               s.tokens_per_s,
               utilization_name(flops),
               100 * utilization_value(u, flops),
               100 * s.bubble_fraction,
               cost.provenance(),
               utilization_legend(flops));
    fmt::print("{}", terms_text(s.report));
  }
  return s.fits ? 0 : static_cast<int>(ErrorCode::kNegative);
}

}  // namespace

Verb simulate_verb(CLI::App& app, const Environment& env) {
  Verb verb = make_verb(app, "simulate", "The event simulation of one step of a plan");
  auto o = std::make_shared<SimulateOptions>();
  verb.app->add_option("plan", o->plan, "Plan file")->required();
  add_flops_option(*verb.app, o->flops);
  verb.app->add_option("--trace", o->trace, "Write the timeline as a Chrome trace");
  verb.app->add_option(
      "--calibration", o->calibration, "Calibration file (default: the newest of this machine)");
  verb.app->add_flag("--force", o->force, "Use a calibration of another machine");
  verb.run = [o, json = verb.json, &env] { return run_simulate(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
