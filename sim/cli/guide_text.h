// The hardware guide for people: devices for a job side by side, and what a job costs.
#pragma once

#include <string>
#include <vector>

#include "sim/advice/hardware_guide.h"

namespace meshwright::cli {

[[nodiscard]] std::string guide_text(const std::vector<DeviceRow>& rows);

/// "$1.2 M at $2.70 an hour (on demand, CoreWeave list ..., 2026-02)" per known price, or
/// "unknown".
[[nodiscard]] std::string cost_text(const DevicePrices& prices, double device_hours);

}  // namespace meshwright::cli
