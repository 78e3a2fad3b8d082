// Prices of device-hours, and what a run costs.
//
// Reads: models/prices/gpu_hours.json (assumptions, each with source and date) and the cluster's
// own price. Feeds: plan, advise. A device without a price has none: nothing is guessed.
#pragma once

#include <optional>
#include <string>

#include "sim/core/units.h"
#include "sim/spec/cluster_spec.h"

namespace meshwright {

/// One price and where it comes from.
struct DevicePrice {
  double usd_per_hour = 0;  ///< Per device.
  std::string source;
  std::string date;
};

struct DevicePrices {
  std::optional<DevicePrice> on_demand;
  std::optional<DevicePrice> spot;
  bool own = false;  ///< The cluster document's own price (as on demand), not an assumption.
};

/// The cluster's own price where its document gives one, else the built-in assumptions for its
/// device; CPU ranks have none.
[[nodiscard]] DevicePrices prices_of(const ClusterSpec& cluster);

/// steps x step time / 3600 x devices x price. 10,000 steps of 45 s on 64 devices at $1.20 are
/// $9,600.
[[nodiscard]] Dollars cost_of_steps(double steps,
                                    Seconds step_time,
                                    int devices,
                                    double usd_per_device_hour);

/// "$1.23", "$9,600", "$1.2 M".
[[nodiscard]] std::string show(Dollars amount);

}  // namespace meshwright
