// Matmul time from a device's data sheet, or from measured samples.
#pragma once

#include <vector>

#include "sim/spec/calibration.h"
#include "sim/spec/cluster_spec.h"

namespace meshwright {

/// Tiles of 256x128, 128x128 or 128x64 dealt to the compute units in waves; the best of the three.
/// Tile efficiencies 1.0, 0.89, 0.90 and the fraction of peak were fitted together on published
/// training steps.
[[nodiscard]] Seconds tiled_matmul_time(
    const DeviceSpec& device, FlopPerSecond peak, int64_t m, int64_t n, int64_t k);

/// Rate (FLOP/s) at [m, k] x [k, n] by inverse-distance weighting of the samples of `kind` in (log
/// m, log n, log k); outside the samples it stays at the nearest. Needs at least one sample of
/// `kind`.
[[nodiscard]] FlopPerSecond sampled_matmul_rate(
    const std::vector<MatmulSample>& samples, OpKind kind, int64_t m, int64_t n, int64_t k);

}  // namespace meshwright
