// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "sim/cli/report_text.h"
#include "sim/cli/run_report.h"
#include "sim/cli/verbs.h"
#include "sim/cli/worker_job.h"
#include "sim/core/text.h"
#include "sim/data/training_data.h"
#include "sim/plan/executor_support.h"
#include "sim/plan/plan_file.h"

namespace meshwright::cli {
namespace {

struct RunOptions {
  std::string plan, data;
  std::string out = "meshwright-run";
  std::string steps = "100";
  int world_size = 0;
};

/// What the user gave, checked before any rank starts.
struct Job {
  PlanFile file;
  int64_t steps;
};

Result<Job> check(const RunOptions& o) {
  MW_ASSIGN_OR_RETURN(const int64_t steps, parse_count("--steps", o.steps, 1, 1'000'000'000));
  MW_ASSIGN_OR_RETURN(PlanFile file, read_plan_file(o.plan));
  const Plan& plan = file.plan;
  if (!plan.cluster().is_local()) {
    return Error{.where = o.plan,
                 .field = "cluster",
                 .value = plan.cluster().name,
                 .rule = "is not this machine: run starts local CPU ranks",
                 .remedy = fmt::format("plan again with --cluster {}xlocal", plan.world_size())};
  }
  if (auto refusal = executor_refuses(plan)) {
    refusal->where = o.plan + "#/decision" + refusal->where;
    return *refusal;
  }
  if (o.world_size != 0 && o.world_size != plan.world_size()) {
    return Error{
        .where = "--world-size",
        .field = "world_size",
        .value = std::to_string(o.world_size),
        .rule = fmt::format("must be the {} ranks that {} was made for", plan.world_size(), o.plan),
        .remedy = fmt::format("plan again with --cluster {}xlocal", o.world_size)};
  }
  MW_RETURN_IF_ERROR(open_training_data(o.data, plan));
  return Job{std::move(file), steps};
}

class EventLog {
 public:
  EventLog(const std::string& path, int64_t steps, bool interactive)
      : out_(path, std::ios::trunc), steps_(steps), line_(interactive) {}

  void operator()(const Event& event) {
    out_ << to_json_line(event) << '\n';
    out_.flush();
    const auto* step = std::get_if<StepEvent>(&event.body);
    if (step == nullptr) return;
    std::string text = fmt::format("step {}/{}", step->step + 1, steps_);
    if (step->loss) text += fmt::format("  loss {:.4f}", *step->loss);
    if (step->grad_norm) text += fmt::format("  grad norm {:.3f}", *step->grad_norm);
    if (step->step_time_s && step->tokens) {
      text += fmt::format("  {}  {:.0f} tokens/s",
                          show(Seconds{*step->step_time_s}),
                          static_cast<double>(*step->tokens) / *step->step_time_s);
    }
    line_.show(text);
    constexpr int64_t kPlainEvery = 10;  // without a terminal, a line now and then
    if (!line_.interactive() && (step->step % kPlainEvery == 0 || step->step + 1 == steps_))
      fmt::print(stderr, "{}\n", text);
  }

 private:
  std::ofstream out_;
  int64_t steps_;
  ProgressLine line_;
};

Result<int> run_run(const RunOptions& o, bool json, const Environment& env) {
  MW_ASSIGN_OR_RETURN(const Job job, check(o));
  std::error_code ec;
  std::filesystem::create_directories(o.out, ec);
  if (ec)
    return Error{.where = "--out",
                 .field = "out",
                 .value = o.out,
                 .rule = "cannot be made: " + ec.message()};
  remove_old_reports(o.out);

  WorkerJob workers{
      .arguments =
          {"train", o.plan, "--data", o.data, "--steps", std::to_string(job.steps), "--out", o.out},
      .world_size = job.file.plan.world_size(),
      .on_event = {}};
  {
    auto log = std::make_shared<EventLog>(o.out + "/events.jsonl", job.steps, env.interactive);
    workers.on_event = [log](const Event& e) { (*log)(e); };
    MW_ASSIGN_OR_RETURN(const WorkerOutcome outcome, run_workers(workers, env));
    workers.on_event = nullptr;
    if (outcome.exit_status != 0) return report_failure(outcome, json);
  }
  MW_ASSIGN_OR_RETURN(const RunReport report, collect_run_report(o.out, job.file));
  MW_RETURN_IF_ERROR(write_text_file(o.out + "/report.json", to_json_text(report)));
  MW_RETURN_IF_ERROR(write_text_file(
      o.out + "/trace.json", to_chrome_trace(report.timeline, Mesh(job.file.plan.layout()))));
  if (json) {
    fmt::print("{}\n", to_json_text(report));
    return 0;
  }
  fmt::print("{} steps on {} ranks ({}): loss {:.4f} -> {:.4f}\n",
             report.loss.size(),
             job.file.plan.world_size(),
             summary(job.file.plan.layout()),
             report.loss.front(),
             report.loss.back());
  if (report.predicted) {
    fmt::print("step {} (predicted {}), peak {} per rank (predicted {})\n",
               show(report.measured.step_time),
               show(report.predicted->step_time),
               show(report.measured.peak_memory),
               show(report.predicted->peak_memory));
  } else {
    fmt::print("step {}, peak {} per rank\n",
               show(report.measured.step_time),
               show(report.measured.peak_memory));
  }
  fmt::print(
      "wrote {0}/report.json, {0}/events.jsonl, {0}/trace.json; next: meshwright compare {0}\n",
      o.out);
  return 0;
}

}  // namespace

Verb run_verb(CLI::App& app, const Environment& env) {
  Verb verb = make_verb(app, "run", "Train: start the ranks of a plan on this machine");
  auto o = std::make_shared<RunOptions>();
  verb.app->add_option("plan", o->plan, "Plan file")->required();
  verb.app->add_option("--data", o->data, "Token file (see tokenize)")->required();
  verb.app->add_option("--steps", o->steps, "Optimizer steps")->capture_default_str();
  verb.app->add_option("--out", o->out, "Folder for events, report and trace")
      ->capture_default_str();
  verb.app->add_option("--world-size", o->world_size, "Ranks to start; must be the plan's");
  verb.run = [o, json = verb.json, &env] { return run_run(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
