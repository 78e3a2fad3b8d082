// Time of one matmul on a device, for the closed-form step model.
//
// Tiles of 256x128, 128x128 or 128x64 dealt to the compute units in waves, split in K where they
// fill less than half a wave; never faster than its operands stream. The tile efficiencies and the
// prologue were fitted on published training steps; they matter for small and odd shapes.
#pragma once

#include <algorithm>
#include <cmath>

namespace meshwright {

struct GemmRate {
  double flops = 1;  ///< FLOP/s of a full wave of the largest tiles.
  double num_sms = 1;
  double bytes_per_second = 1;  ///< That operands stream at.
  double element_bytes = 2;     ///< Of the inputs; the output is BF16.
  double gap_s = 0;             ///< Between kernels.
};

inline constexpr double kGemmPrologueK = 64;  // elements of K that filling the pipeline costs

/// `count` independent [m, k] x [k, n] products in one launch (1: an ordinary matmul).
[[nodiscard]] inline double gemm_time(
    const GemmRate& rate, double m, double n, double k, double count = 1) {
  struct Tile {
    double m, n, efficiency;
  };
  constexpr Tile kTiles[] = {{256, 128, 1.0}, {128, 128, 0.89}, {128, 64, 0.90}};
  double best = 1e30;
  for (const Tile& tile : kTiles) {
    double tiles = count * std::ceil(m / tile.m) * std::ceil(n / tile.n);
    double depth = k;
    if (tiles < 0.5 * rate.num_sms) {
      tiles *= 2;
      depth /= 2;
    }
    const double waves = std::ceil(tiles / rate.num_sms);
    best = std::min(best,
                    waves * 2 * tile.m * tile.n * (depth + kGemmPrologueK) * rate.num_sms /
                        (rate.flops * tile.efficiency));
  }
  const double bytes = count * ((m * k + k * n) * rate.element_bytes + 2 * m * n);
  return std::max(best, bytes / rate.bytes_per_second) + rate.gap_s;
}

}  // namespace meshwright
