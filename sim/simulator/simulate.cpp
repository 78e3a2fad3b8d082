// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/simulate.h"

#include <algorithm>
#include <cmath>

#include "sim/schedule/pipeline/pipeline_order.h"
#include "sim/simulator/program_player.h"
#include "sim/simulator/stage_costs.h"

namespace meshwright {
namespace {

struct StagePeak {
  MemoryProfile memory;
  int stage = 0;
};

MemoryProfile stage_memory(const Plan& plan,
                           const Program& program,
                           const StageCosts& costs,
                           int stage) {
  return replay_stage(plan, costs.footprints(), program, costs.placement(stage), stage);
}

/// Memory of the stage that needs most.
StagePeak peak_memory(const Plan& plan, const Program& program, const StageCosts& costs) {
  StagePeak peak;
  for (int s = 0; s < plan.layout().pp; ++s) {
    const MemoryProfile p = stage_memory(plan, program, costs, s);
    if (s == 0 || p.peak > peak.memory.peak) peak = {p, s};
  }
  return peak;
}

/// What stragglers add to a step over several nodes, as a fraction.
double scale_slowdown(const ClusterSpec& cluster) {
  return cluster.scale_slowdown_per_doubling * std::log2(static_cast<double>(cluster.num_nodes()));
}

/// Micro-batches of a step whose peak is that of one with `m`: once a schedule's ramp is filled it
/// repeats itself.
int64_t micro_batches_to_peak(const Layout& l, int64_t m) {
  const int64_t p = l.pp;
  switch (l.schedule) {
    case ScheduleKind::kGpipe:
      return m;
    case ScheduleKind::k1f1b:
      return std::min(m, p + 2);
    case ScheduleKind::kInterleaved:
      // Two groups of the same size as in the whole step; what ZeRO gathers ahead needs the steady
      // state between them too.
      return m <= 3 * p ? m
                        : std::min(m,
                                   (l.zero_stage >= 2 ? 4 : 2) *
                                       int64_t{micro_batch_group(l.pp, static_cast<int>(m))});
    case ScheduleKind::kZbH1:
    case ScheduleKind::kZbH2:
    case ScheduleKind::kZbV:
      return std::min(m, 4 * p);
    case ScheduleKind::kDualPipe:
      return std::min(m, 4 * p);
  }
  return m;
}

/// Micro-batches that a rank keeps in flight at least (1F1B min(m, p - r), and no less with
/// a split backward; GPipe m).
int64_t least_in_flight(const Layout& l, int rank, int64_t m) {
  switch (l.schedule) {
    case ScheduleKind::kGpipe:
      return m;
    case ScheduleKind::k1f1b:
    case ScheduleKind::kZbH1:
    case ScheduleKind::kZbH2:
      return std::min<int64_t>(m, l.pp - rank);
    case ScheduleKind::kInterleaved:
    case ScheduleKind::kZbV:
    case ScheduleKind::kDualPipe:
      return 1;
  }
  return 1;
}

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

/// Boundaries between virtual stages of one copy of the model that messages cross.
int crossed_boundaries(const StageMap& map) {
  int count = 0;
  for (int i = 0; i < map.size(); ++i) {
    if (map[i].copy == 0 && map[i].next >= 0 && map[map[i].next].rank != map[i].rank) ++count;
  }
  return count;
}

}  // namespace

Simulation simulate(const Plan& plan, const CostModel& cost) {
  StageCostCache cache;
  return simulate(plan, cost, cache);
}

Simulation simulate(const Plan& plan, const CostModel& cost, StageCostCache& cache) {
  const StageCosts costs(plan, cost, cache);
  const Program program = build_program(plan, costs.placements(), plan.num_micro_batches());
  Simulation out;
  out.timeline =
      ProgramPlayer(
          plan, program, costs, EventLoop(plan.cluster().shared_cores, cost.oversubscription()))
          .play();
  out.report = terms_of_slowest_rank(out.timeline, Mesh(plan.layout()));
  const Seconds straggling = out.report.step_time * scale_slowdown(plan.cluster());
  out.report[Term::kOther] += straggling;
  out.report.step_time += straggling;
  const StagePeak peak = peak_memory(plan, program, costs);
  out.peak_stage = peak.stage;
  out.report.peak_memory = peak.memory.peak;
  out.report.memory = peak.memory.at_peak;
  out.report.memory_bound = memory_bound(plan, peak.memory);
  const double tokens = static_cast<double>(plan.workload().tokens_per_step());
  out.tokens_per_s = tokens / out.report.step_time.v;
  const Flop flop = model_flop_per_token(plan.model(), plan.workload().seq_len) * tokens;
  const double devices = plan.cluster().shared_cores
                             ? std::min(plan.world_size(), *plan.cluster().shared_cores)
                             : plan.world_size();
  out.mfu = flop / out.report.step_time / (cost.peak(plan.layout().precision) * devices);
  out.bubble_fraction = out.report[Term::kBubble] / out.report.step_time;
  out.fits = out.report.memory_bound->upper <= plan.cluster().capacity();
  return out;
}

Seconds estimate_time(const Plan& plan, const CostModel& cost, const StageCosts& costs) {
  const Layout& l = plan.layout();
  const auto m = static_cast<double>(plan.num_micro_batches());
  // What a step does once.
  const Program once = build_program(plan, costs.placements(), l.model_copies());

  std::vector<RankWork> work;
  double sum = 0;
  double tail = 0;  // reduction that the last backward does not cover, and the optimizer
  for (int s = 0; s < l.pp; ++s) {
    work.push_back(rank_work(plan, costs, s));
    double reduce = 0;
    double last_reduce = 0;  // the collective that no backward follows
    double gather = 0;
    double last_gather = 0;
    double optimizer = 0;
    double first_optimizer = 0;
    double rest = costs.step_start(s).v;
    double waits = 0;  // of a micro-batch, where each gathers or reduces
    bool in_micro_batch = l.zero_stage >= 2;
    for (const Action& a : once.stages[static_cast<size_t>(s)]) {
      in_micro_batch = in_micro_batch && a.kind != ActionKind::kGradNorm;
      if (a.kind == ActionKind::kReduce) {
        const double t = costs.behind(a, s).v;
        last_reduce = a.joined ? last_reduce + t : t;
        reduce += t;
      }
      if (a.kind == ActionKind::kGather) gather += last_gather = costs.behind(a, s).v;
      if (a.kind == ActionKind::kOptimizer) {
        const double t = costs.duration(a, s).v;
        if (optimizer == 0) first_optimizer = t;
        optimizer += t;
      }
      const bool at_end = a.kind == ActionKind::kSumCopies || a.kind == ActionKind::kSumTied ||
                          a.kind == ActionKind::kGradNorm || a.kind == ActionKind::kWaitReduce ||
                          a.kind == ActionKind::kWaitGather;
      if (at_end) (in_micro_batch ? waits : rest) += costs.duration(a, s).v;
    }
    // Updated buckets spread while the next ones are updated.
    const bool spreads = l.zero_stage == 1 || l.zero_stage == 2;
    rest += spreads ? std::max(first_optimizer + gather, optimizer + last_gather) : optimizer;
    work.back().stretch(work.back().total() + waits);
    if (l.zero_stage == 3) {
      // Gathers and reductions of a micro-batch run behind its computation.
      work.back().stretch(l.reshard ? gather + reduce : reduce);
      if (!l.reshard) rest += std::max(0.0, gather - work.back().forward);
      rest += last_reduce;
    } else if (l.zero_stage == 2) {
      work.back().stretch(reduce);
      rest += last_reduce;
    } else {
      rest += std::max(last_reduce, reduce - work.back().backward);
    }
    sum += work.back().total();
    tail = std::max(tail, rest);
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
  time *= 1.0 + scale_slowdown(plan.cluster());
  return Seconds{time};
}

QuickEstimate estimate(const Plan& plan, const CostModel& cost, StageCostCache& cache) {
  const StageCosts costs(plan, cost, cache);
  return {estimate_time(plan, cost, costs), estimate_peak_memory(plan, costs)};
}

/// peak_memory() from short steps. Under GPipe every further micro-batch adds the same saved
/// tensors.
Bytes estimate_peak_memory(const Plan& plan, const StageCosts& costs) {
  const int64_t m = plan.num_micro_batches();
  const auto program = [&](int64_t n) { return build_program(plan, costs.placements(), n); };
  constexpr int64_t kShort = 3;
  if (plan.layout().schedule != ScheduleKind::kGpipe || m <= kShort) {
    return peak_memory(plan, program(micro_batches_to_peak(plan.layout(), m)), costs).memory.peak;
  }
  const Program shorter = program(kShort - 1);
  const Program longer = program(kShort);
  Bytes
      peak;  // each stage grows at its own pace, so that another one may be the highest in the end
  for (int s = 0; s < plan.layout().pp; ++s) {
    const Bytes at_short = stage_memory(plan, longer, costs, s).peak;
    const Bytes growth = at_short - stage_memory(plan, shorter, costs, s).peak;
    peak = std::max(peak, at_short + growth * static_cast<double>(m - kShort));
  }
  return peak;
}

Bytes memory_floor(const Plan& plan, const CostModel& cost, StageCostCache& cache) {
  const auto placements = cache.placements(plan);
  const auto shard = cache.shard(plan, cost);
  const StageFootprints& f = shard->footprints;
  const int64_t m = plan.num_micro_batches();
  Bytes floor;
  for (int rank = 0; rank < plan.layout().pp; ++rank) {
    // The least that a rank keeps of one virtual stage; its output may have left.
    double kept = 0;
    for (const int stage : plan.stage_map().of_rank(rank)) {
      const auto [begin, end] = plan.blocks_of_stage(stage);
      double saved = 0;
      for (int b = begin; b < end; ++b) {
        saved += f.blocks[static_cast<int>(block_kind(plan, b))].forward.delta;
      }
      kept = std::max(kept, saved - f.boundary);
    }
    const Bytes resident = resident_memory(plan, (*placements)[static_cast<size_t>(rank)]).peak;
    const auto in_flight = static_cast<double>(least_in_flight(plan.layout(), rank, m));
    floor = std::max(floor, resident + Bytes{std::max(0.0, kept) * in_flight});
  }
  return floor;
}

}  // namespace meshwright
