// SPDX-License-Identifier: Apache-2.0
#include "sim/planner/objective.h"

#include <algorithm>

namespace meshwright {
namespace {

void merge(PlannerResult& into, PlannerResult&& from) {
  into.examined += from.examined;
  into.feasible += from.feasible;
  into.elapsed_s += from.elapsed_s;
  for (RankedPlan& p : from.plans) into.plans.push_back(std::move(p));
  for (Rejection& r : from.rejected) {
    const auto same = std::find_if(into.rejected.begin(),
                                   into.rejected.end(),
                                   [&](const Rejection& x) { return x.rule == r.rule; });
    if (same == into.rejected.end()) {
      into.rejected.push_back(std::move(r));
    } else {
      same->count += r.count;
    }
  }
}

double device_seconds(const RankedPlan& p) {
  return p.plan.world_size() * p.simulation.report.step_time.v;
}

}  // namespace

std::vector<int> device_counts(const ClusterSpec& cluster, Objective objective) {
  if (objective == Objective::kTime) return {cluster.num_devices};
  std::vector<int> counts;
  for (int n = 1; n < cluster.devices_per_node && n < cluster.num_devices; n *= 2)
    counts.push_back(n);
  for (int64_t n = cluster.devices_per_node; n < cluster.num_devices; n *= 2)
    counts.push_back(static_cast<int>(n));
  counts.push_back(cluster.num_devices);
  return counts;
}

PlannerResult plan_for(Objective objective,
                       const std::shared_ptr<const Problem>& problem,
                       const CostModel& cost,
                       const PlannerOptions& options) {
  PlannerResult result;
  for (const int devices : device_counts(problem->cluster, objective)) {
    auto part = std::make_shared<Problem>(*problem);
    part->cluster = with_devices(problem->cluster, devices);
    merge(result, plan_layouts(part, cost.with_cluster(part->cluster), options));
    if (objective == Objective::kGpus && !result.plans.empty()) break;
  }
  if (objective == Objective::kCost) {
    std::stable_sort(
        result.plans.begin(), result.plans.end(), [](const RankedPlan& a, const RankedPlan& b) {
          return device_seconds(a) < device_seconds(b);
        });
  }
  if (result.plans.size() > static_cast<size_t>(options.top_k)) {
    result.plans.erase(result.plans.begin() + options.top_k, result.plans.end());
  }
  return result;
}

}  // namespace meshwright
