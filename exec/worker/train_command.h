// `meshwright-worker train PLAN.json --data FILE --steps N --out DIR`: one rank of a training run.
//
// Reads: a plan file and a token file. Writes: events on stdout and DIR/rank<r>.json
// (sim/report/rank_report.h).
#pragma once

#include <cstdint>
#include <string>

#include "exec/telemetry/event_writer.h"
#include "exec/worker/worker_environment.h"

namespace meshwright {

struct TrainArguments {
  std::string plan_path;
  std::string data_path;
  int64_t steps = 1;
  std::string out_dir;
};

/// @return the process's exit status: 0; 2 when plan, data or world size cannot be used; 70 when a
/// step fails. Both failures are said in a `failed` event.
[[nodiscard]] int run_train(const TrainArguments& arguments,
                            const WorkerEnvironment& environment,
                            EventWriter& events);

}  // namespace meshwright
