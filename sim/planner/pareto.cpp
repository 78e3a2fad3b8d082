// SPDX-License-Identifier: Apache-2.0
#include "sim/planner/pareto.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace meshwright {
namespace {

bool no_worse(const std::vector<double>& a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
  }
  return true;
}

/// `bytes` rounded up to a step of a geometric scale, one step per `grain`.
double coarse(double bytes, double grain) {
  if (grain <= 0 || bytes <= 0) return bytes;
  return std::ceil(std::log(bytes) / std::log1p(grain));
}

std::vector<double> front_point(
    FrontAxis axis, double grain, const Plan& plan, Seconds time, Bytes peak) {
  std::vector<double> p = {time.v, coarse(peak.v, grain)};
  if (axis == FrontAxis::kDevices) p.push_back(plan.world_size());
  if (axis == FrontAxis::kDeviceTime) p.push_back(plan.world_size() * time.v);
  return p;
}

}  // namespace

std::vector<size_t> pareto_front(const std::vector<std::vector<double>>& points) {
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(
      order.begin(), order.end(), [&](size_t a, size_t b) { return points[a] < points[b]; });
  // In lexicographic order nothing that comes later beats what came before.
  std::vector<size_t> front;
  for (const size_t i : order) {
    const bool beaten = std::any_of(
        front.begin(), front.end(), [&](size_t f) { return no_worse(points[f], points[i]); });
    if (!beaten) front.push_back(i);
  }
  return front;
}

std::vector<RankedPlan> simulated_front(const std::vector<Candidate>& candidates,
                                        const CostModel& cost,
                                        FrontAxis axis,
                                        double grain,
                                        size_t limit) {
  std::vector<std::vector<double>> points;
  for (const Candidate& c : candidates)
    points.push_back(front_point(axis, grain, c.plan, c.time, c.peak));
  const std::vector<size_t> front = pareto_front(points);
  std::vector<RankedPlan> plans;
  std::vector<std::vector<double>> simulated;
  const size_t n = std::min(limit, front.size());
  for (size_t k = 0; k < n; ++k) {
    const size_t at = n > 1 ? k * (front.size() - 1) / (n - 1) : 0;
    const Plan& plan = candidates[front[at]].plan;
    plans.push_back({plan, simulate(plan, cost.with_cluster(plan.cluster()))});
    const StepReport& r = plans.back().simulation.report;
    simulated.push_back(front_point(axis, grain, plan, r.step_time, r.peak_memory));
  }
  std::vector<RankedPlan> out;
  for (const size_t i : pareto_front(simulated)) out.push_back(std::move(plans[i]));
  return out;
}

}  // namespace meshwright
