// SPDX-License-Identifier: Apache-2.0
#include "exec/calibrate/calibrate.h"

#include "exec/calibrate/collective_bench.h"
#include "exec/calibrate/operator_bench.h"
#include "sim/core/clock.h"
#include "sim/core/version.h"

namespace meshwright {

Calibration calibrate(CommWorld& world, const std::string& store_url, const MachineFacts& machine) {
  Calibration c;
  c.machine_id = machine.id;
  c.cpu_model = machine.cpu_model;
  c.cores = machine.cores;
  c.date = utc_now();
  c.tool_version = kVersion;
  measure_operators(world, machine.cores, c);
  measure_collectives(world, store_url, c);
  return c;
}

}  // namespace meshwright
