// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/cli/verbs.h"
#include "sim/cli/worker_job.h"
#include "sim/core/clock.h"

namespace meshwright::cli {
namespace {

struct CalibrateOptions {
  std::string output;
  int world_size = 0;
};

Result<int> run_calibrate(const CalibrateOptions& o, bool json, const Environment& env) {
  std::string path = o.output;
  if (path.empty()) {
    std::error_code ec;
    std::filesystem::create_directories(env.calibration_dir, ec);
    path = fmt::format("{}/calibration-{}.json", env.calibration_dir, utc_now());
  }
  constexpr int kLeastRanks = 4;  // groups of 2 and 4 are what a few cores can train with
  const int ranks = o.world_size > 0 ? o.world_size : std::max(kLeastRanks, env.machine.cores);
  WorkerOutcome outcome;
  {
    ProgressLine line(env.interactive);
    line.show(fmt::format("measuring this machine with {} ranks, about half a minute", ranks));
    const WorkerJob job{
        .arguments = {"calibrate", "--output", path}, .world_size = ranks, .on_event = {}};
    MW_ASSIGN_OR_RETURN(outcome, run_workers(job, env));
  }
  if (outcome.exit_status != 0) return report_failure(outcome, json);
  MW_ASSIGN_OR_RETURN(const Calibration c, read_calibration(path));
  if (json) {
    print_json({{"schema_version", kOutputSchemaVersion},
                {"output", path},
                {"id", c.id},
                {"machine_id", c.machine_id}});
    return 0;
  }
  double best = 0;
  for (const MatmulSample& s : c.matmul) {
    best = std::max(best,
                    2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) *
                        static_cast<double>(s.k) / s.seconds);
  }
  fmt::print("{}: {} cores of {}; best matmul {:.1f} GFLOP/s per core, {} shapes\n",
             path,
             c.cores,
             c.cpu_model,
             best / 1e9,
             c.matmul.size());
  for (const CollectiveFit& f : c.collectives) {
    fmt::print("  {:<14} {} ranks: {:>8} + {:.2f} GB/s\n",
               to_string(f.op),
               f.group_size,
               show(Seconds{f.alpha_s}),
               1e-9 / f.beta_s_per_byte);
  }
  return 0;
}

}  // namespace

Verb calibrate_verb(CLI::App& app, const Environment& env) {
  Verb verb = make_verb(
      app, "calibrate", "Measure this machine: matmul, memory, collectives, host overhead");
  auto o = std::make_shared<CalibrateOptions>();
  verb.app->add_option("-o,--output", o->output, "Calibration file (default: this user's cache)");
  verb.app->add_option("--world-size",
                       o->world_size,
                       "Largest group of ranks to measure (default: 4, or one per core)");
  verb.run = [o, json = verb.json, &env] { return run_calibrate(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
