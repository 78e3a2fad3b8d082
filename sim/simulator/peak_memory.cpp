// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/peak_memory.h"

#include <algorithm>

#include "sim/schedule/pipeline/pipeline_order.h"

namespace meshwright {
namespace {

MemoryProfile stage_memory(const Plan& plan,
                           const Program& program,
                           const StageCosts& costs,
                           int stage) {
  return replay_stage(plan, costs.footprints(), program, costs.placement(stage), stage);
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

}  // namespace

StagePeak peak_memory(const Plan& plan, const Program& program, const StageCosts& costs) {
  StagePeak peak;
  for (int s = 0; s < plan.layout().pp; ++s) {
    const MemoryProfile p = stage_memory(plan, program, costs, s);
    if (s == 0 || p.peak > peak.memory.peak) peak = {p, s};
  }
  return peak;
}

// From short steps. Under GPipe every further micro-batch adds the same saved tensors.
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
