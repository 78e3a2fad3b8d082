// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/prices.h"

#include <fmt/format.h>

#include <map>

#include "sim/core/json_reader.h"
#include "sim/spec/builtin_documents.h"

namespace meshwright {
namespace {

constexpr double kSecondsPerHour = 3600;

std::optional<DevicePrice> read_price(ObjectReader& r, const std::string& kind) {
  const auto usd = r.optional_number(kind + "_usd_per_hour", kNonNegative);
  if (!usd) return std::nullopt;
  return DevicePrice{*usd, r.text(kind + "_source"), r.text(kind + "_date")};
}

Result<std::map<std::string, DevicePrices>> read_price_list(std::string_view text,
                                                            const std::string& origin) {
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, origin));
  ObjectReader r(json, origin);
  r.integer("schema_version", {1, 1});
  r.ignore("note");
  const Json& devices = r.object("devices");
  MW_RETURN_IF_ERROR(r.finish());
  std::map<std::string, DevicePrices> prices;
  for (const auto& [name, entry] : devices.items()) {
    ObjectReader d(entry, origin, "/devices/" + name);
    DevicePrices p;
    p.on_demand = read_price(d, "on_demand");
    p.spot = read_price(d, "spot");
    MW_RETURN_IF_ERROR(d.finish());
    prices[name] = std::move(p);
  }
  return prices;
}

const std::map<std::string, DevicePrices>& builtin_prices() {
  static const std::map<std::string, DevicePrices> kPrices =
      read_price_list(*builtin_document("prices", "gpu_hours"), "models/prices/gpu_hours").value();
  return kPrices;
}

}  // namespace

DevicePrices prices_of(const ClusterSpec& cluster) {
  if (cluster.price_usd_per_device_hour) {
    return {.on_demand = DevicePrice{*cluster.price_usd_per_device_hour, "cluster document", ""},
            .spot = {},
            .own = true};
  }
  if (cluster.is_local()) return {};
  const auto it = builtin_prices().find(cluster.device.name);
  return it == builtin_prices().end() ? DevicePrices{} : it->second;
}

Dollars cost_of_steps(double steps, Seconds step_time, int devices, double usd_per_device_hour) {
  return Dollars{steps * step_time.v / kSecondsPerHour * devices * usd_per_device_hour};
}

std::string show(Dollars amount) {
  if (amount.v >= 1e6) return fmt::format("${:.3g} M", amount.v / 1e6);
  if (amount.v < 0.1) return fmt::format("${:.2g}", amount.v);
  if (amount.v < 100) return fmt::format("${:.2f}", amount.v);
  std::string digits = fmt::format("{:.0f}", amount.v);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return "$" + digits;
}

}  // namespace meshwright
