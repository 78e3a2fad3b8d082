// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "sim/cli/verbs.h"
#include "sim/cli/worker_job.h"
#include "sim/core/clock.h"
#include "sim/core/version.h"
#include "sim/launch/job_folder.h"
#include "sim/parity/parity.h"
#include "sim/plan/executor_support.h"
#include "sim/plan/plan_file.h"
#include "sim/plan/plan_json.h"

namespace meshwright::cli {
namespace {

struct VerifyOptions {
  std::string plan, suite, inject;
  std::string random;
  uint64_t seed = 1;
};

Result<std::vector<Plan>> cases(const VerifyOptions& o) {
  const int chosen =
      (o.plan.empty() ? 0 : 1) + (o.suite.empty() ? 0 : 1) + (o.random.empty() ? 0 : 1);
  if (chosen != 1) {
    return Error{.where = "verify",
                 .field = "what",
                 .value = std::to_string(chosen) + " given",
                 .rule = "takes exactly one of a plan file, --suite NAME and --random N",
                 .remedy = "try --suite slice"};
  }
  if (!o.random.empty()) {
    MW_ASSIGN_OR_RETURN(const int64_t count, parse_count("--random", o.random, 1, 100'000));
    return random_suite(static_cast<int>(count), o.seed);
  }
  if (!o.suite.empty()) {
    if (o.suite != "slice")
      return Error{.where = "--suite",
                   .field = "suite",
                   .value = o.suite,
                   .rule = "is not a suite",
                   .remedy = "suites: slice"};
    return slice_suite();
  }
  MW_ASSIGN_OR_RETURN(const PlanFile file, read_plan_file(o.plan));
  MW_ASSIGN_OR_RETURN(const PlanCase c, parity_case_of(file.plan));
  if (auto refusal = executor_refuses(c.plan)) {
    refusal->where = o.plan + "#/decision" + refusal->where;
    return *refusal;
  }
  if (c.reduced) {
    fmt::print(stderr,
               "the plan is too big for this machine: checking the same axes at reduced width, {} "
               "ranks ({})\n",
               c.plan.world_size(),
               summary(c.plan.layout()));
  }
  return std::vector<Plan>{c.plan};
}

Result<int> run_verify(const VerifyOptions& o, bool json, const Environment& env) {
  static const std::vector<std::string> kFaults = {
      "skipped_all_reduce", "doubled_norm_term", "wrong_loss_scale"};
  if (!o.inject.empty() && std::find(kFaults.begin(), kFaults.end(), o.inject) == kFaults.end()) {
    return Error{.where = "--inject",
                 .field = "inject",
                 .value = o.inject,
                 .rule = "is not a fault",
                 .remedy = "faults: " + join(kFaults)};
  }
  MW_ASSIGN_OR_RETURN(const std::vector<Plan> plans, cases(o));
  MW_ASSIGN_OR_RETURN(const JobFolder folder, JobFolder::create());
  int world = 1;
  for (size_t i = 0; i < plans.size(); ++i) {
    world = std::max(world, plans[i].world_size());
    MW_RETURN_IF_ERROR(write_plan_file(fmt::format("{}/case{:04}.json", folder.path(), i),
                                       {.plan = plans[i],
                                        .hash = plan_hash(plans[i]),
                                        .predicted = std::nullopt,
                                        .provenance = {kVersion, utc_now(), ""}}));
  }
  const std::string results_path = folder.path() + "/results.json";
  WorkerJob job{.arguments = {"verify", "--cases", folder.path(), "--output", results_path},
                .world_size = world,
                .on_event = {}};
  if (!o.inject.empty()) job.arguments.insert(job.arguments.end(), {"--inject", o.inject});
  MW_ASSIGN_OR_RETURN(const WorkerOutcome outcome, run_workers(job, env));
  if (outcome.exit_status != 0) return report_failure(outcome, json);
  MW_ASSIGN_OR_RETURN(const std::string text, read_text_file(results_path));
  MW_ASSIGN_OR_RETURN(const std::vector<ParityResult> results,
                      parse_parity_results(text, results_path));
  MW_CHECK(results.size() == plans.size());

  size_t good = 0;
  Json list = Json::array();
  if (!json)
    fmt::print("{:<10} {:<46} {:>5} {:>9} {:>9} {:>9}\n",
               "model",
               "layout",
               "ranks",
               "loss",
               "norm",
               "gradient");
  for (size_t i = 0; i < plans.size(); ++i) {
    const ParityResult& r = results[i];
    good += r.ok() ? 1 : 0;
    if (json) {
      list.push_back({{"model", plans[i].model().name},
                      {"layout", layout_to_json(plans[i])},
                      {"loss_rel_err", r.loss_rel_err},
                      {"grad_norm_rel_err", r.grad_norm_rel_err},
                      {"max_grad_rel_err", r.max_grad_rel_err},
                      {"worst_tensor", r.worst_tensor},
                      {"copies_equal", r.copies_equal},
                      {"ok", r.ok()}});
      continue;
    }
    fmt::print("{:<10} {:<46} {:>5} {:>9.1e} {:>9.1e} {:>9.1e}  {}\n",
               plans[i].model().name,
               summary(plans[i].layout()),
               plans[i].world_size(),
               r.loss_rel_err,
               r.grad_norm_rel_err,
               r.max_grad_rel_err,
               r.ok()           ? "ok"
               : r.copies_equal ? "FAILS at " + r.worst_tensor
                                : "FAILS: copies differ");
  }
  if (json) {
    print_json({{"schema_version", kOutputSchemaVersion},
                {"tolerance", kParityTolerance},
                {"layouts", std::move(list)}});
  } else {
    fmt::print("{} of {} layouts equal one rank within {:.0e}{}\n",
               good,
               plans.size(),
               kParityTolerance,
               o.inject.empty() ? "" : " with the fault " + o.inject);
  }
  return good == plans.size() ? 0 : static_cast<int>(ErrorCode::kNegative);
}

}  // namespace

Verb verify_verb(CLI::App& app, const Environment& env) {
  Verb verb =
      make_verb(app, "verify", "Layout parity: the step in a layout equals the step on one rank");
  auto o = std::make_shared<VerifyOptions>();
  verb.app->add_option("plan", o->plan, "Plan file to check");
  verb.app->add_option("--suite", o->suite, "Built-in suite: slice");
  verb.app->add_option("--random", o->random, "Check this many random layouts");
  verb.app->add_option("--seed", o->seed, "Of --random")->capture_default_str();
  verb.app->add_option(
      "--inject",
      o->inject,
      "Prove that the check can fail: skipped_all_reduce, doubled_norm_term, wrong_loss_scale");
  verb.run = [o, json = verb.json, &env] { return run_verify(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
