// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/guide_text.h"

#include <fmt/format.h>

#include "sim/core/text.h"

namespace meshwright::cli {
namespace {

/// The figure that the two devices' data sheets are most often confused in.
std::string peak_note(const std::vector<DeviceRow>& rows) {
  const DeviceSpec* h100 = nullptr;
  const DeviceSpec* a100 = nullptr;
  for (const DeviceRow& r : rows) {
    if (r.cluster.device.name == "h100") h100 = &r.cluster.device;
    if (r.cluster.device.name == "a100-80g") a100 = &r.cluster.device;
  }
  if (h100 == nullptr || a100 == nullptr) return "";
  return fmt::format(
      "  note: h100 peaks at {:.0f} TFLOP/s in BF16 without sparsity, {:.1f} times a100-80g's "
      "{:.0f}; "
      "1,979 is its sparse figure\n",
      h100->peak_bf16.v / 1e12,
      h100->peak_bf16 / a100->peak_bf16,
      a100->peak_bf16.v / 1e12);
}

std::string price_column(const std::optional<Dollars>& per_step) {
  return per_step ? show(*per_step) : "unknown";
}

}  // namespace

std::string guide_text(const std::vector<DeviceRow>& rows) {
  std::string text = fmt::format("  {:<13} {:>9} {:>6} {:>11} {:>11} {:>11} {:>12} {:>12}  {}\n",
                                 "device",
                                 "step",
                                 "vs #1",
                                 "peak/rank",
                                 "$/step",
                                 "$/step",
                                 "tokens/$",
                                 "tokens/$",
                                 "layout");
  text += fmt::format("  {:<13} {:>9} {:>6} {:>11} {:>11} {:>11} {:>12} {:>12}\n",
                      "",
                      "",
                      "",
                      "",
                      "on demand",
                      "spot",
                      "on demand",
                      "spot");
  const auto tokens = [](const std::optional<double>& n) {
    return n ? fmt::format("{:.3g} M", *n / 1e6) : std::string("unknown");
  };
  for (const DeviceRow& r : rows) {
    if (!r.best) {
      text += fmt::format(
          "  {:<13} does not fit: {}\n",
          r.cluster.device.name,
          r.least > r.cluster.capacity()
              ? fmt::format("needs at least {}, has {}", show(r.least), show(r.cluster.capacity()))
              : "no legal layout");
      continue;
    }
    const StepReport& report = r.best->simulation.report;
    text += fmt::format("  {:<13} {:>9} {:>5.2f}x {:>11} {:>11} {:>11} {:>12} {:>12}  {}\n",
                        r.cluster.device.name,
                        show(report.step_time),
                        report.step_time / rows.front().best->simulation.report.step_time,
                        show(report.peak_memory),
                        price_column(r.per_step(r.prices.on_demand)),
                        price_column(r.per_step(r.prices.spot)),
                        tokens(r.tokens_per_dollar(r.prices.on_demand)),
                        tokens(r.tokens_per_dollar(r.prices.spot)),
                        summary(r.best->plan.layout()));
  }
  text += peak_note(rows);
  text +=
      "  prices are assumptions: list prices of single providers, not quotes, on demand and spot "
      "often of different ones:\n";
  for (const DeviceRow& r : rows) {
    for (const auto& [kind, price] :
         {std::pair{"on demand", &r.prices.on_demand}, std::pair{"spot", &r.prices.spot}}) {
      if (*price) {
        text += fmt::format("    {:<13} {:<9} ${:<7.4g} {}; {}\n",
                            r.cluster.device.name,
                            kind,
                            (*price)->usd_per_hour,
                            (*price)->date,
                            (*price)->source);
      }
    }
  }
  return text;
}

std::string cost_text(const DevicePrices& prices, double device_hours) {
  std::vector<std::string> parts;
  const auto add = [&](const char* kind, const std::optional<DevicePrice>& price) {
    if (!price) return;
    parts.push_back(fmt::format("{} {} at ${:.4g} per device-hour",
                                show(Dollars{device_hours * price->usd_per_hour}),
                                kind,
                                price->usd_per_hour));
  };
  add(prices.own ? "" : "on demand", prices.on_demand);
  add("spot", prices.spot);
  if (parts.empty()) return "unknown (no price_usd_per_device_hour for this cluster)";
  return fmt::format(
      "{}{}", fmt::join(parts, ", "), prices.own ? "" : " (assumed prices: see advise --devices)");
}

}  // namespace meshwright::cli
