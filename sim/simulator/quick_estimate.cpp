// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/quick_estimate.h"

#include <algorithm>
#include <vector>

#include "sim/simulator/peak_memory.h"

namespace meshwright {
namespace {

/// Work of one micro-batch on a pipeline rank, in seconds.
struct RankWork {
  double forward = 0;
  double backward = 0;  ///< With recompute.
  double input = 0;     ///< Its half that the rank before waits for,
  double weight = 0;    ///< and the other one.
  [[nodiscard]] double total() const { return forward + backward; }
  /// Communication that runs behind it bounds it from below.
  void stretch(double communication) {
    if (communication <= total()) return;
    const double factor = communication / total();
    forward *= factor;
    backward *= factor;
    input *= factor;
    weight *= factor;
  }
};

RankWork rank_work(const Plan& plan, const StageCosts& costs, int rank) {
  RankWork w;
  const Layout& l = plan.layout();
  for (const int id : plan.stage_map().of_rank(rank)) {
    const auto [begin, end] = plan.blocks_of_stage(id);
    const auto walk = [&](ActionKind kind) {
      return costs.blocks({.kind = kind, .block_begin = begin, .block_end = end}).total().v /
             l.model_copies();
    };
    const double recompute = l.recompute != Recompute::kNone ? walk(ActionKind::kRecompute) : 0.0;
    w.forward += walk(ActionKind::kForward);
    w.input += walk(ActionKind::kBackwardInput) + recompute;
    w.weight += walk(ActionKind::kBackwardWeight);
    w.backward += splits_backward(l.schedule) ? walk(ActionKind::kBackwardInput) +
                                                    walk(ActionKind::kBackwardWeight) + recompute
                                              : walk(ActionKind::kBackward) + recompute;
  }
  return w;
}

/// What the ranks other than the slowest add to m times its work: FORMULAS' bubbles, each rank's
/// share from its own work.
double pipeline_bubble(const Layout& l, const std::vector<RankWork>& work, size_t slowest) {
  const auto others = [&](auto share) {
    double sum = 0;
    for (size_t r = 0; r < work.size(); ++r) {
      if (r != slowest) sum += share(work[r]);
    }
    return sum;
  };
  switch (l.schedule) {
    case ScheduleKind::kGpipe:
    case ScheduleKind::k1f1b:
    case ScheduleKind::kInterleaved:
      return others([](const RankWork& w) { return w.total(); }) / l.virtual_stages;
    case ScheduleKind::kZbH1:
      return others([](const RankWork& w) { return w.forward + w.input - w.weight; });
    case ScheduleKind::kZbH2:
      return others(
          [](const RankWork& w) { return w.forward + std::max(0.0, w.input - 2 * w.weight); });
    case ScheduleKind::kZbV:
      return others([](const RankWork& w) { return std::max(w.forward, w.input) / 2; });
    case ScheduleKind::kDualPipe: {
      const RankWork& w = work[slowest];
      return (l.pp / 2.0 - 1) * (w.total() + w.backward - 3 * w.weight);
    }
  }
  return 0;
}

/// Transfers that no computation hides: those of the event simulation with equal stages. GPipe and
/// 1F1B receive where they need the message, twice per micro-batch on a rank between two others;
/// the rest post receives ahead and pay for fill and drain, and dualpipe for the meeting of its two
/// directions in the middle.
double exposed_hops(const Layout& l, double m) {
  const double p = l.pp;
  if (l.pp == 1) return 0;
  switch (l.schedule) {
    case ScheduleKind::kGpipe:
      return 2 * m + 2 * (p - 2);
    case ScheduleKind::k1f1b:
      return l.pp == 2 ? m + 1 : 2 * m + 2 * (p - 2) - 1;
    case ScheduleKind::kInterleaved:
      return 2.0 * (l.num_parts() - 1);
    case ScheduleKind::kZbH1:
      return 4 * (p - 1);
    case ScheduleKind::kZbH2:
      return p - 1;
    case ScheduleKind::kZbV:
      return 5 * p - 7;
    case ScheduleKind::kDualPipe:
      return m * (1 - 1 / p) + p;
  }
  return 0;
}

/// A rank's program played by itself: computation in one stream, exchanges with replicas in
/// another.
struct OwnTime {
  double micro_batches = 0;  ///< Up to the gradient norm.
  double step = 0;
};

OwnTime own_time(const Program& program, const StageCosts& costs, int rank) {
  OwnTime t;
  const std::vector<Action>& actions = program.stages[static_cast<size_t>(rank)];
  const size_t buckets = costs.placement(rank).buckets.size();
  std::vector<double> reduced(buckets), gathered(buckets);  // when it ends
  double exchanges = 0;
  for (const Action& a : actions) {
    const auto bucket = static_cast<size_t>(std::max(0, a.bucket));
    if (a.kind == ActionKind::kGradNorm) t.micro_batches = t.step;
    switch (a.kind) {
      case ActionKind::kReduce:
      case ActionKind::kGather:
        exchanges = std::max(exchanges, t.step) + costs.behind(a, rank).v;
        (a.kind == ActionKind::kReduce ? reduced : gathered)[bucket] = exchanges;
        break;
      case ActionKind::kWaitReduce:
      case ActionKind::kWaitGather:
        t.step = std::max(t.step, (a.kind == ActionKind::kWaitReduce ? reduced : gathered)[bucket]);
        [[fallthrough]];
      default:
        t.step += costs.duration(a, rank).v;
    }
  }
  return t;
}

/// Boundaries between virtual stages of one copy of the model that messages cross.
int crossed_boundaries(const StageMap& map) {
  int count = 0;
  for (int i = 0; i < map.size(); ++i) {
    if (map[i].copy == 0 && map[i].next >= 0 && map[map[i].next].rank != map[i].rank) ++count;
  }
  return count;
}

}  // namespace

Seconds estimate_time(const Plan& plan, const CostModel& cost, const StageCosts& costs) {
  const Layout& l = plan.layout();
  const auto m = static_cast<double>(plan.num_micro_batches());
  // One micro-batch shows what a step does once, and two what sharded states add to each.
  const int copies = l.model_copies();
  const Program one = build_program(plan, costs.placements(), copies);
  const bool shards = l.zero_stage >= 2;
  const Program two = shards ? build_program(plan, costs.placements(), 2 * copies) : Program{};

  std::vector<RankWork> work;
  double sum = 0;
  double tail = 0;  // reduction that the last backward does not cover, and the optimizer
  for (int s = 0; s < l.pp; ++s) {
    RankWork& w = work.emplace_back(rank_work(plan, costs, s));
    const OwnTime once = own_time(one, costs, s);
    if (shards) w.stretch((own_time(two, costs, s).micro_batches - once.micro_batches) / copies);
    sum += w.total();
    tail = std::max(tail, costs.step_start(s).v + once.step - copies * w.total());
  }
  const auto slowest = static_cast<size_t>(
      std::max_element(work.begin(),
                       work.end(),
                       [](const RankWork& a, const RankWork& b) { return a.total() < b.total(); }) -
      work.begin());
  double time = m * work[slowest].total() + pipeline_bubble(l, work, slowest) +
                exposed_hops(l, m) * costs.transfer().v + tail;
  if (plan.cluster().shared_cores) {
    // All ranks' work over the shared cores bounds the step from below.
    const double ranks_per_stage = static_cast<double>(plan.world_size()) / l.pp;
    const double transfers = 2.0 * m * crossed_boundaries(plan.stage_map()) *
                             costs.transfer().v;  // there and back; both ends copy
    const double all = (m * sum + 2.0 * transfers) * ranks_per_stage + tail * plan.world_size();
    const double oversubscribed =
        plan.world_size() > *plan.cluster().shared_cores ? cost.oversubscription() : 1.0;
    time = std::max(time, all / *plan.cluster().shared_cores * oversubscribed);
  }
  time *= 1.0 + plan.cluster().scale_slowdown();
  return Seconds{time};
}

QuickEstimate estimate(const Plan& plan, const CostModel& cost, StageCostCache& cache) {
  const StageCosts costs(plan, cost, cache);
  return {estimate_time(plan, cost, costs), estimate_peak_memory(plan, costs)};
}

}  // namespace meshwright
