// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/simulate.h"

#include <algorithm>
#include <cmath>

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
  return replay_stage(plan,
                      costs.footprints(),
                      program.stages[static_cast<size_t>(stage)],
                      resident_memory(plan, costs.placement(stage)));
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

/// peak_memory() from short steps. 1F1B repeats once its ramp is filled; under GPipe every further
/// micro-batch adds the same saved tensors.
Bytes quick_peak_memory(const Plan& plan, const StageCosts& costs) {
  const int64_t m = plan.num_micro_batches();
  const auto program = [&](int64_t n) { return build_program(plan, costs.placements(), n); };
  if (plan.layout().schedule == ScheduleKind::k1f1b) {
    return peak_memory(plan, program(std::min<int64_t>(m, plan.layout().pp + 2)), costs)
        .memory.peak;
  }
  constexpr int64_t kShort = 3;
  if (m <= kShort) return peak_memory(plan, program(m), costs).memory.peak;
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
  const double tokens = static_cast<double>(plan.workload().tokens_per_step());
  out.tokens_per_s = tokens / out.report.step_time.v;
  const Flop flop = model_flop_per_token(plan.model(), plan.workload().seq_len) * tokens;
  const double devices = plan.cluster().shared_cores
                             ? std::min(plan.world_size(), *plan.cluster().shared_cores)
                             : plan.world_size();
  out.mfu = flop / out.report.step_time / (cost.peak(plan.layout().precision) * devices);
  out.bubble_fraction = out.report[Term::kBubble] / out.report.step_time;
  out.fits = out.report.peak_memory <= plan.cluster().capacity();
  return out;
}

QuickEstimate estimate(const Plan& plan, const CostModel& cost, StageCostCache& cache) {
  const StageCosts costs(plan, cost, cache);
  const Layout& l = plan.layout();
  const auto m = static_cast<double>(plan.num_micro_batches());
  const Program one = build_program(plan, costs.placements(), 1);  // what a step does once

  double slowest = 0;
  double sum = 0;
  double tail = 0;  // reduction that the last backward does not cover, and the optimizer
  for (int s = 0; s < l.pp; ++s) {
    const auto [begin, end] = plan.blocks_of_stage(s);
    const auto walk = [&](ActionKind kind) {
      return costs.blocks({.kind = kind, .block_begin = begin, .block_end = end}).total().v;
    };
    const double backward = walk(ActionKind::kBackward) +
                            (l.recompute != Recompute::kNone ? walk(ActionKind::kRecompute) : 0.0);
    const double stage = walk(ActionKind::kForward) + backward;
    slowest = std::max(slowest, stage);
    sum += stage;
    double reduce = 0;
    double rest = costs.step_start(s).v;
    for (const Action& a : one.stages[static_cast<size_t>(s)]) {
      if (a.kind == ActionKind::kReduce) reduce += costs.reduce(s, a.bucket).v;
      if (a.kind == ActionKind::kGather) rest += costs.gather(s, a.bucket).v;
      const bool at_end = a.kind == ActionKind::kSumCopies || a.kind == ActionKind::kSumTied ||
                          a.kind == ActionKind::kGradNorm || a.kind == ActionKind::kOptimizer;
      if (at_end) rest += costs.duration(a, s).v;
    }
    tail = std::max(tail, std::max(0.0, reduce - backward) + rest);
  }
  // 1F1B exposes about two hops per micro-batch in steady state, GPipe one each way per fill and
  // drain.
  const double hops = l.pp == 1                           ? 0.0
                      : l.schedule == ScheduleKind::k1f1b ? 2.0 * (l.pp - 1) * (m / l.pp + 0.68)
                                                          : 2.0 * (l.pp - 1) + m;
  double time = m * slowest + sum - slowest + hops * costs.transfer().v + tail;
  if (plan.cluster().shared_cores) {
    // All ranks' work over the shared cores bounds the step from below.
    const double ranks_per_stage = static_cast<double>(plan.world_size()) / l.pp;
    const double transfers =
        2.0 * m * (l.pp - 1) * costs.transfer().v;  // there and back; both ends copy
    const double work = (m * sum + 2.0 * transfers) * ranks_per_stage + tail * plan.world_size();
    const double oversubscribed =
        plan.world_size() > *plan.cluster().shared_cores ? cost.oversubscription() : 1.0;
    time = std::max(time, work / *plan.cluster().shared_cores * oversubscribed);
  }
  time *= 1.0 + scale_slowdown(plan.cluster());
  return {Seconds{time}, quick_peak_memory(plan, costs)};
}

}  // namespace meshwright
