// Start-up time and bandwidth of the collectives, by group size.
#pragma once

#include "exec/comm/communicator.h"
#include "sim/spec/calibration.h"

namespace meshwright {

/// Fills calibration.collectives for groups of the first 2, 4, 8, ... ranks up to the world. Every rank calls it; the
/// result is the same on all ranks. Figures are wall times with all ranks of the group at work: where a group has
/// more ranks than the machine has cores, sharing is in them.
void measure_collectives(CommWorld& world, Calibration& calibration);

}  // namespace meshwright
