// Calibration of this machine: operators, then collectives.
#pragma once

#include "exec/comm/communicator.h"
#include "sim/spec/calibration.h"
#include "sim/spec/cluster_spec.h"

namespace meshwright {

/// Every rank of the job calls it. The result is the same on all ranks; takes about half a minute.
[[nodiscard]] Calibration calibrate(CommWorld& world, const MachineFacts& machine);

}  // namespace meshwright
