// Cost of the collectives, from real tensor-parallel training steps, and of messages between two
// ranks.
//
// A collective in a loop of its own starts several times faster than in training, where its ranks
// arrive at different times and its threads must be woken beside busy cores. So beta comes from
// loops, and alpha from training steps with tp = 2, 4, ...: what a step takes beyond the CPU time
// of its ranks, per operation.
#pragma once

#include <string>

#include "exec/calibrate/operator_bench.h"
#include "exec/comm/communicator.h"
#include "sim/spec/calibration.h"

namespace meshwright {

/// Fills calibration.collectives for groups of the first 2, 4 and 8 ranks up to the world. Every
/// rank calls it; the result is the same on all ranks. Figures are wall times with the whole group
/// at work: where a group has more ranks than the machine has cores, sharing is in them.
/// `store_url` is the job's (each group meets at a place of its own).
void measure_collectives(CommWorld& world, const std::string& store_url, Calibration& calibration);

}  // namespace meshwright
