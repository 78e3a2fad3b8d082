// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/matmul_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshwright {

Seconds tiled_matmul_time(
    const DeviceSpec& device, FlopPerSecond peak, int64_t m, int64_t n, int64_t k) {
  struct Tile {
    int64_t m, n;
    double efficiency;
  };
  constexpr Tile kTiles[] = {{256, 128, 1.0}, {128, 128, 0.89}, {128, 64, 0.90}};
  const int64_t units = device.num_sms;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& t : kTiles) {
    const int64_t tiles = ((m + t.m - 1) / t.m) * ((n + t.n - 1) / t.n);
    const auto waves = static_cast<double>((tiles + units - 1) / units);
    const double flop =
        waves * 2.0 * static_cast<double>(t.m * t.n * units) * static_cast<double>(k);
    best = std::min(best, flop / (peak.v * device.matmul_fraction * t.efficiency));
  }
  return Seconds{best};
}

FlopPerSecond sampled_matmul_rate(
    const std::vector<MatmulSample>& samples, OpKind kind, int64_t m, int64_t n, int64_t k) {
  double weights = 0;
  double rate = 0;
  for (const MatmulSample& s : samples) {
    if (s.kind != kind) continue;
    const auto log_ratio = [](int64_t a, int64_t b) {
      return std::log2(static_cast<double>(std::max<int64_t>(a, 1)) / static_cast<double>(b));
    };
    const double dm = log_ratio(m, s.m);
    const double dn = log_ratio(n, s.n);
    const double dk = log_ratio(k, s.k);
    const double distance2 = dm * dm + dn * dn + dk * dk;
    const double w = 1.0 / (1e-6 + distance2 * distance2);  // fourth power: near shapes decide
    weights += w;
    rate += w * 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) *
            static_cast<double>(s.k) / s.seconds;
  }
  MW_CHECK(weights > 0, "no matmul sample of this kind");
  return FlopPerSecond{rate / weights};
}

}  // namespace meshwright
