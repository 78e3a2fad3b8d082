// What the operator models need to know of a GPU from its data sheet, in the units of their inner
// loops.
#pragma once

#include "sim/spec/cluster_spec.h"

namespace meshwright {

struct GpuFacts {
  double num_sms = 1;
  double l2_bytes = 1;
  double dram_bytes_per_us = 1;
  double bf16_flop_per_us = 1;
  double fp8_flop_per_us = 0;  ///< Zero without fp8 tensor cores.
  double clock_GHz = 1;        ///< Boost.
};

[[nodiscard]] inline GpuFacts gpu_facts(const DeviceSpec& device) {
  constexpr double kPerMicrosecond = 1e-6;
  return {.num_sms = static_cast<double>(device.num_sms),
          .l2_bytes = device.l2_cache.v,
          .dram_bytes_per_us = device.memory_bandwidth.v * kPerMicrosecond,
          .bf16_flop_per_us = device.peak_bf16.v * kPerMicrosecond,
          .fp8_flop_per_us = device.peak_fp8.v * kPerMicrosecond,
          .clock_GHz = device.boost_clock_GHz};
}

/// Time per byte relative to DRAM for data last touched `distance` L2 capacities of traffic ago:
/// 1 / gain when it is still in L2, 1 when it is not.
[[nodiscard]] inline double l2_time_factor(double distance, double gain) {
  const double d2 = distance * distance;
  return 1 - (1 - 1 / gain) / (1 + d2 * d2);
}

}  // namespace meshwright
