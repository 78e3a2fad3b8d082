// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/hardware_guide.h"

#include <algorithm>

#include "sim/advice/least_memory.h"

namespace meshwright {
namespace {

DeviceRow device_row(const Problem& problem, ClusterSpec cluster, const LayoutPins& pins) {
  auto own = std::make_shared<Problem>(problem);
  own->cluster = cluster;
  const CostModel cost(cluster, nullptr);
  DeviceRow row{.cluster = cluster, .best = {}, .least = {}, .prices = prices_of(cluster)};
  PlannerResult found = plan_layouts(own, cost, {.top_k = 1, .pins = pins, .progress = {}});
  if (!found.plans.empty()) {
    row.best = std::move(found.plans.front());
  } else {
    const int node = std::min(cluster.devices_per_node, cluster.num_devices);
    const auto max_pp = std::min<int64_t>(problem.model.num_layers, cluster.num_devices);
    if (const auto least = least_memory(own, cost, node, static_cast<int>(max_pp)))
      row.least = least->peak;
  }
  return row;
}

}  // namespace

std::optional<Dollars> DeviceRow::per_step(const std::optional<DevicePrice>& price) const {
  if (!best || !price) return std::nullopt;
  return cost_of_steps(
      1, best->simulation.report.step_time, best->plan.world_size(), price->usd_per_hour);
}

std::optional<double> DeviceRow::tokens_per_dollar(const std::optional<DevicePrice>& price) const {
  const auto cost = per_step(price);
  if (!cost || cost->v <= 0) return std::nullopt;
  return static_cast<double>(best->plan.workload().tokens_per_step()) / cost->v;
}

std::vector<DeviceRow> hardware_guide(const Problem& problem,
                                      const LayoutPins& pins,
                                      const std::function<void(const std::string&)>& progress) {
  std::vector<DeviceRow> rows;
  for (const std::string& device : builtin_devices()) {
    if (find_builtin_gpu(device) == nullptr) continue;  // CPU ranks
    if (progress) progress(device);
    const auto cluster =
        load_cluster(std::to_string(problem.cluster.num_devices) + "x" + device, {});
    if (cluster) rows.push_back(device_row(problem, *cluster, pins));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const DeviceRow& a, const DeviceRow& b) {
    if (a.best && b.best) {
      return a.best->simulation.report.step_time < b.best->simulation.report.step_time;
    }
    return a.best.has_value() && !b.best.has_value();
  });
  return rows;
}

}  // namespace meshwright
