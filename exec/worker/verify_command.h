// `meshwright-worker verify --cases DIR --output FILE [--inject FAULT]`: layout parity of every
// DIR/case*.json.
//
// The ranks stay alive over all cases: a case of fewer ranks uses the first ones. Writes: FILE, the
// ParityResults in case order (sim/parity/parity.h), by rank 0.
#pragma once

#include <string>

#include "exec/telemetry/event_writer.h"
#include "exec/worker/worker_environment.h"

namespace meshwright {

struct VerifyArguments {
  std::string cases_dir;
  std::string output_path;
  std::string inject;  ///< Empty, or a Fault's name.
};

/// @return the process's exit status: 0 when all cases were run (whatever they found); 2 when a
/// case or the fault cannot be used.
[[nodiscard]] int run_verify(const VerifyArguments& arguments,
                             const WorkerEnvironment& environment,
                             EventWriter& events);

}  // namespace meshwright
