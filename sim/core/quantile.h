// Quantiles of measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace meshwright {

/// Nearest rank: the smallest value that a share `q` of them does not exceed. `sorted` is not
/// empty.
[[nodiscard]] inline double nearest_rank_quantile(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

}  // namespace meshwright
