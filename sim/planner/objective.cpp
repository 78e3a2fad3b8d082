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
  for (Candidate& c : from.all_feasible) into.all_feasible.push_back(std::move(c));
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

/// The closed form ranks, the simulation decides: layouts this much slower by the closed form are
/// looked at too. Its bounds in tests/unit/sim/simulator, on own devices and on shared cores.
constexpr double kEstimateMargin = 0.05;
constexpr double kSharedCoresMargin = 0.25;

/// The smallest peaks among the layouts at most `slack` slower than the fastest.
std::vector<RankedPlan> least_memory(const PlannerResult& result,
                                     const CostModel& cost,
                                     double slack,
                                     size_t top_k) {
  std::vector<RankedPlan> out;
  if (result.plans.empty()) return out;
  const Seconds limit = result.plans.front().simulation.report.step_time * (1 + slack);
  const bool shared = result.plans.front().plan.cluster().shared_cores.has_value();
  const double margin = shared ? kSharedCoresMargin : kEstimateMargin;
  std::vector<const Candidate*> near;
  for (const Candidate& c : result.all_feasible) {
    if (c.time <= limit * (1 + margin)) near.push_back(&c);
  }
  std::stable_sort(near.begin(), near.end(), [](const Candidate* a, const Candidate* b) {
    return a->peak < b->peak;
  });
  for (const Candidate* c : near) {
    if (out.size() == top_k) break;
    Simulation s = simulate(c->plan, cost);
    if (s.report.step_time <= limit) out.push_back({c->plan, std::move(s)});
  }
  return out;
}

}  // namespace

std::vector<int> device_counts(const ClusterSpec& cluster, Objective objective) {
  if (objective == Objective::kTime || objective == Objective::kMemory)
    return {cluster.num_devices};
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
                       const PlannerOptions& options,
                       double slack) {
  if (objective == Objective::kMemory) {
    PlannerOptions all = options;
    all.keep_feasible = all.replay_all = true;
    PlannerResult found = plan_layouts(problem, cost, all);
    found.plans = least_memory(found, cost, slack, static_cast<size_t>(options.top_k));
    if (!options.keep_feasible) found.all_feasible.clear();
    return found;
  }
  PlannerResult result;
  for (const int devices : device_counts(problem->cluster, objective)) {
    auto part = std::make_shared<Problem>(*problem);
    part->cluster = with_devices(problem->cluster, devices);
    merge(result, plan_layouts(part, cost.with_cluster(part->cluster), options));
    const bool enough = objective == Objective::kGpus && !options.keep_feasible;
    if (enough && !result.plans.empty()) break;
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
