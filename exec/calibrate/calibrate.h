// Calibration of this machine: operators, then collectives.
#pragma once

#include <string>

#include "exec/comm/communicator.h"
#include "sim/spec/calibration.h"
#include "sim/spec/cluster_spec.h"

namespace meshwright {

/// Every rank of the job calls it; `store_url` is where the job met. The result is the same on all
/// ranks; takes about half a minute.
[[nodiscard]] Calibration calibrate(CommWorld& world,
                                    const std::string& store_url,
                                    const MachineFacts& machine);

}  // namespace meshwright
