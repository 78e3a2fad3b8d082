// SPDX-License-Identifier: Apache-2.0
#include "exec/worker/calibrate_command.h"

#include <chrono>

#include "exec/calibrate/calibrate.h"
#include "exec/comm/communicator.h"
#include "exec/worker/refuse.h"

namespace meshwright {

int run_calibrate(const CalibrateArguments& arguments,
                  const WorkerEnvironment& environment,
                  EventWriter& events) {
  constexpr std::chrono::minutes kPeerTimeout{5};
  const auto world = CommWorld::connect(
      environment.store_url, environment.rank, environment.world_size, kPeerTimeout);
  const Calibration calibration = calibrate(*world, environment.store_url, read_machine_facts());
  if (environment.rank != 0) return 0;
  if (auto written = write_calibration(arguments.output_path, calibration); !written) {
    return refuse(events, written.error());
  }
  return 0;
}

}  // namespace meshwright
