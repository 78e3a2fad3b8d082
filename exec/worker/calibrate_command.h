// `meshwright-worker calibrate --output FILE`: one rank of a calibration job; rank 0 writes FILE.
#pragma once

#include <string>

#include "exec/telemetry/event_writer.h"
#include "exec/worker/worker_environment.h"

namespace meshwright {

struct CalibrateArguments {
  std::string output_path;
};

/// @return the process's exit status: 0, or 2 when the file cannot be written.
[[nodiscard]] int run_calibrate(const CalibrateArguments& arguments,
                                const WorkerEnvironment& environment,
                                EventWriter& events);

}  // namespace meshwright
