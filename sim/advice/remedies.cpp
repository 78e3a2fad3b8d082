// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/remedies.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/text.h"

namespace meshwright {

void Remedies::add(const std::string& action, const std::optional<Plan>& plan) {
  if (!plan || plan->layout() == plan_.layout()) return;
  list_.push_back({action, simulated(*plan, cost_), ""});
}

void Remedies::try_degrees(const std::string& action, int tp, int pp) {
  if (const auto l = with_degrees(plan_.layout(), tp, pp)) add(action, in_layout(plan_, *l));
}

void Remedies::try_interleaving() {
  constexpr int kMostVirtualStages = 8;
  std::vector<Plan> plans;
  for (int v = 2; v <= kMostVirtualStages; ++v) {
    Layout l = plan_.layout();
    l.schedule = ScheduleKind::kInterleaved;
    l.virtual_stages = v;
    l.stages.clear();
    const bool even = plan_.model().num_layers % (int64_t{l.pp} * v) == 0;
    const auto p = even || v == 2 ? in_layout(plan_, l) : std::nullopt;
    if (p && !(p->layout() == plan_.layout())) plans.push_back(*p);
  }
  auto best = fastest(plans, cost_, plan_.cluster().capacity());
  if (!best) return;
  const int v = best->plan.layout().virtual_stages;
  list_.push_back({fmt::format("schedule=interleaved,virtual_stages={}", v), std::move(best), ""});
}

void Remedies::try_batch(const std::string& action, int64_t sequences) {
  auto problem = std::make_shared<Problem>(plan_.problem());
  problem->workload.global_batch = sequences;
  const ValidationOutcome outcome = validate(problem, plan_.layout());
  if (!outcome.plan) return;
  list_.push_back({action, simulated(*outcome.plan, cost_), ""});
}

std::optional<int64_t> Remedies::try_micro_batches(int64_t micro_batches, double fraction) {
  constexpr double kStep = 1.05;
  const int64_t most = 2 * micro_batches;
  for (int64_t m = micro_batches; m <= most;
       m = std::max(m + 1, static_cast<int64_t>(static_cast<double>(m) * kStep))) {
    auto problem = std::make_shared<Problem>(plan_.problem());
    problem->workload.global_batch = m * plan_.layout().dp() * plan_.layout().micro_batch;
    const ValidationOutcome outcome = validate(problem, plan_.layout());
    if (!outcome.plan) continue;
    const Simulation s = simulate(*outcome.plan, cost_);
    if (s.bubble_fraction >= fraction) continue;
    list_.push_back(
        {fmt::format(
             "{} micro-batches: a batch of {} sequences", m, problem->workload.global_batch),
         Variant{*outcome.plan, s.report.step_time, s.report.peak_memory},
         ""});
    return m;
  }
  return std::nullopt;
}

void Remedies::try_network(double factor) {
  auto problem = std::make_shared<Problem>(plan_.problem());
  LinkSpec& link = problem->cluster.inter_node;
  link.bandwidth = BytesPerSecond{link.bandwidth.v * factor};
  const ValidationOutcome outcome = validate(problem, plan_.layout());
  if (!outcome.plan) return;
  list_.push_back({fmt::format("a network of {:.3g} GB/s per device", link.bandwidth.v / 1e9),
                   simulated(*outcome.plan, cost_.with_cluster(problem->cluster)),
                   ""});
}

}  // namespace meshwright
