// SPDX-License-Identifier: Apache-2.0
// Plays the slots of a schedule, by default with free communication: bubbles and micro-batches in
// flight as the papers count them, without operators, messages or an optimizer.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "sim/mesh/stage_map.h"
#include "sim/schedule/pipeline/pipeline_order.h"

namespace meshwright::testing {

/// Times of one pass over a virtual stage.
struct SlotTimes {
  double forward = 1;
  double input = 1;
  double weight = 1;
  double transfer = 0;  ///< From one rank to another, from the end of a pass; holds nobody up.
  [[nodiscard]] double of(SlotWork w) const {
    return w == SlotWork::kForward          ? forward
           : w == SlotWork::kBackwardInput  ? input
           : w == SlotWork::kBackwardWeight ? weight
                                            : input + weight;
  }
};

struct SlotRun {
  double makespan = 0;
  std::vector<double> busy;         ///< Per rank.
  std::vector<double> own_idle;     ///< Between a rank's first and last slot.
  std::vector<int> peak_in_flight;  ///< Forwards whose weight gradient is not done.
  bool complete = false;            ///< No rank waits for ever.
  [[nodiscard]] double bubble() const { return makespan - busy.front(); }
  [[nodiscard]] double worst_own_idle() const {
    return *std::max_element(own_idle.begin(), own_idle.end());
  }
};

inline SlotRun play_slots(const PipelineShape& shape, const SlotTimes& t) {
  Layout layout{
      .pp = shape.num_ranks, .virtual_stages = shape.virtual_stages, .schedule = shape.kind};
  layout.stages.assign(static_cast<size_t>(layout.num_parts()), 1);
  const StageMap map(layout);
  const auto n = static_cast<size_t>(shape.num_ranks);
  std::vector<std::vector<PipelineSlot>> order;
  for (int r = 0; r < shape.num_ranks; ++r) order.push_back(pipeline_order(shape, r));

  std::map<std::tuple<bool, int, int>, double> done;  // (forward, virtual stage, micro-batch)
  std::vector<size_t> next(n);
  std::vector<double> now(n), first(n, -1);
  std::vector<int> live(n);
  SlotRun run{.busy = std::vector<double>(n),
              .own_idle = std::vector<double>(n),
              .peak_in_flight = std::vector<int>(n)};
  const auto ready = [&](const PipelineSlot& s, double& at) {
    const VirtualStage& v = map[s.virtual_stage];
    const bool forward = s.work == SlotWork::kForward;
    const int from = forward ? v.previous : v.next;
    if (s.work == SlotWork::kBackwardWeight || from < 0) return true;
    const auto it = done.find({forward, from, s.micro_batch});
    if (it == done.end()) return false;
    at = std::max(at, it->second + (map[from].rank == v.rank ? 0 : t.transfer));
    return true;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t r = 0; r < n; ++r) {
      while (next[r] < order[r].size()) {
        const size_t count = order[r][next[r]].joins_next ? 2 : 1;
        double start = now[r];
        bool all = true;
        for (size_t i = 0; i < count; ++i) all = all && ready(order[r][next[r] + i], start);
        if (!all) break;
        if (first[r] < 0) first[r] = start;
        double end = start;
        for (size_t i = 0; i < count; ++i) end += t.of(order[r][next[r] + i].work);
        run.busy[r] += end - start;
        now[r] = end;
        for (size_t i = 0; i < count; ++i) {
          const PipelineSlot& s = order[r][next[r] + i];
          if (s.work != SlotWork::kBackwardWeight)
            done[{s.work == SlotWork::kForward, s.virtual_stage, s.micro_batch}] = end;
          if (s.work == SlotWork::kForward) ++live[r];
          run.peak_in_flight[r] = std::max(run.peak_in_flight[r], live[r]);
          if (s.work == SlotWork::kBackward || s.work == SlotWork::kBackwardWeight) --live[r];
        }
        next[r] += count;
        progress = true;
      }
    }
  }
  run.complete = true;
  for (size_t r = 0; r < n; ++r) {
    run.complete = run.complete && next[r] == order[r].size();
    run.makespan = std::max(run.makespan, now[r]);
    run.own_idle[r] = now[r] - first[r] - run.busy[r];
  }
  return run;
}

}  // namespace meshwright::testing
