// The same job on every built-in GPU: step time, memory fit, and what it costs.
//
// Reads: a Problem and models/hardware, models/prices. Feeds: advise. Each device gets as many of
// it as the problem's cluster has, its own nodes and links, and a full search.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/advice/prices.h"
#include "sim/planner/planner.h"

namespace meshwright {

struct DeviceRow {
  ClusterSpec cluster;
  std::optional<RankedPlan> best;  ///< The fastest layout; nothing when none fits.
  Bytes least;                     ///< Least peak of any layout: what fitting would take.
  DevicePrices prices;

  /// Of one step at a price; nothing without a layout or a price.
  [[nodiscard]] std::optional<Dollars> per_step(const std::optional<DevicePrice>& price) const;
  /// Tokens per dollar at a price.
  [[nodiscard]] std::optional<double> tokens_per_dollar(
      const std::optional<DevicePrice>& price) const;
};

/// Rows of the built-in GPUs, fastest first, those that cannot hold the job last. `progress` is
/// called before each search with the device's name; may be empty.
[[nodiscard]] std::vector<DeviceRow> hardware_guide(
    const Problem& problem,
    const LayoutPins& pins,
    const std::function<void(const std::string&)>& progress);

}  // namespace meshwright
