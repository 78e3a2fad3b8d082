// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/variants.h"

#include <algorithm>

#include "sim/simulator/peak_memory.h"
#include "sim/simulator/quick_estimate.h"

namespace meshwright {

std::optional<Plan> in_layout(const Plan& plan, Layout layout) {
  return validate(std::make_shared<const Problem>(plan.problem()), layout).plan;
}

std::optional<Layout> with_degrees(const Layout& layout, int tp, int pp) {
  const int64_t world = layout.world_size();
  const int64_t model_parallel = int64_t{tp} * pp * layout.cp;
  if (tp < 1 || pp < 1 || world % model_parallel != 0) return std::nullopt;
  const auto dp = static_cast<int>(world / model_parallel);
  Layout l = layout;
  l.tp = tp;
  l.pp = pp;
  const bool sharded = l.zero_stage > 0 && dp > 1;
  l.dp_shard = sharded ? dp : 1;
  l.dp_replicate = sharded ? 1 : dp;
  if (!sharded) l.zero_stage = 0;
  l.sp = tp > 1 && (layout.sp || layout.tp == 1);
  if (pp == 1) {
    l.schedule = ScheduleKind::k1f1b;
    l.virtual_stages = 1;
  }
  if (pp != layout.pp) l.stages.clear();
  return l;
}

std::vector<Plan> neighbours(const Plan& plan) {
  const Layout& own = plan.layout();
  std::vector<Plan> out;
  std::vector<Layout> seen = {own};
  const auto around = [](int64_t x) {
    return x > 1 ? std::vector<int64_t>{x, x / 2, 2 * x} : std::vector<int64_t>{x, 2 * x};
  };
  const auto add = [&](const Layout& l) {
    const std::optional<Plan> p = in_layout(plan, l);
    if (!p || std::find(seen.begin(), seen.end(), p->layout()) != seen.end()) return;
    seen.push_back(p->layout());
    out.push_back(*p);
  };
  for (const int64_t tp : around(own.tp)) {
    for (const int64_t pp : around(own.pp)) {
      const auto degrees = with_degrees(own, static_cast<int>(tp), static_cast<int>(pp));
      if (!degrees) continue;
      for (const int64_t mb : around(own.micro_batch)) {
        for (const Recompute r : {Recompute::kNone, Recompute::kFull}) {
          Layout l = *degrees;
          l.micro_batch = mb;
          l.recompute = r;
          add(l);
          if (l.zero_stage == 0 && l.dp() > 1) {
            Layout z = l;
            z.zero_stage = 1;
            z.dp_shard = l.dp();
            z.dp_replicate = 1;
            add(z);
          }
          if (l.schedule != ScheduleKind::k1f1b) {
            l.schedule = ScheduleKind::k1f1b;
            l.virtual_stages = 1;
            l.stages.clear();
            add(l);
          }
        }
      }
    }
  }
  return out;
}

Variant simulated(const Plan& plan, const CostModel& cost) {
  const Simulation s = simulate(plan, cost);
  return {plan, s.report.step_time, s.report.peak_memory};
}

std::optional<Variant> fastest(const std::vector<Plan>& plans, const CostModel& cost, Bytes limit) {
  StageCostCache cache;
  const Plan* best = nullptr;
  Seconds best_time;
  for (const Plan& p : plans) {
    if (memory_upper_bound(p, memory_floor(p, cost, cache)) > limit) continue;
    const QuickEstimate e = estimate(p, cost, cache);
    if (memory_upper_bound(p, e.peak_memory) > limit ||
        (best != nullptr && e.step_time >= best_time))
      continue;
    best = &p;
    best_time = e.step_time;
  }
  if (best == nullptr) return std::nullopt;
  return simulated(*best, cost);
}

}  // namespace meshwright
