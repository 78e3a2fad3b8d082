// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/least_memory.h"

#include <algorithm>

#include "sim/simulator/quick_estimate.h"

namespace meshwright {
namespace {

constexpr int kHighestZeroStage = 3;

std::optional<Bytes> peak_of_layout(const std::shared_ptr<const Problem>& problem,
                                    const Layout& layout,
                                    const CostModel& cost) {
  const ValidationOutcome outcome = validate(problem, layout);
  if (!outcome.plan) return std::nullopt;
  StageCostCache cache;
  return estimate(*outcome.plan, cost, cache).peak_memory;
}

}  // namespace

double sharded_state_bytes(const StateBytes& bytes, int stage, double ranks) {
  const auto share = [&](int from, double n) { return stage >= from ? n / ranks : n; };
  return share(3, bytes.weight) + share(2, bytes.gradient) + share(1, bytes.optimizer);
}

std::optional<LeastMemory> least_memory(const std::shared_ptr<const Problem>& problem,
                                        const CostModel& cost,
                                        int tp,
                                        int pp,
                                        bool sharded) {
  const int world = problem->cluster.num_devices;
  if (world % (tp * pp) != 0) return std::nullopt;
  const int dp = world / (tp * pp);
  Layout l{.tp = tp,
           .sp = tp > 1,
           .pp = pp,
           .recompute = Recompute::kFull,
           .precision = problem->workload.precision};
  for (int stage = sharded && dp > 1 ? kHighestZeroStage : 0; stage >= 0; --stage) {
    l.zero_stage = stage;
    l.dp_shard = stage > 0 ? dp : 1;
    l.dp_replicate = stage > 0 ? 1 : dp;
    if (const auto peak = peak_of_layout(problem, l, cost)) return LeastMemory{l, *peak};
  }
  return std::nullopt;
}

std::optional<LeastMemory> least_memory(const std::shared_ptr<const Problem>& problem,
                                        const CostModel& cost,
                                        int max_tp,
                                        int max_pp) {
  std::optional<LeastMemory> best;
  for (int tp = 1; tp <= max_tp; ++tp) {
    for (int pp = 1; pp <= max_pp; ++pp) {
      const auto found = least_memory(problem, cost, tp, pp, true);
      if (found && (!best || found->peak < best->peak)) best = found;
    }
  }
  return best;
}

}  // namespace meshwright
