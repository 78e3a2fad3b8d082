// SPDX-License-Identifier: Apache-2.0
#include "sim/search/candidate.h"

#include <fmt/format.h>

namespace meshwright {

StepProblem problem_of(const StepProblem& problem, const StepCandidate& c) {
  StepProblem p = problem;
  p.work.recompute = c.recompute;
  p.work.sequence_parallel = c.sequence_parallel;
  return p;
}

Evaluation evaluate(const StepProblem& problem,
                    StateConvention convention,
                    const StepCandidate& c) {
  const StepProblem p = problem_of(problem, c);
  const ShardCost shard = price_shard(p, c.layout.shard);
  return {.time_s = evaluate_step(p, shard, c.layout).total_s(),
          .memory_bytes = peak_memory(p, convention, c.layout).allocated_bytes()};
}

std::string describe(const StepCandidate& c) {
  const StepLayout& l = c.layout;
  std::string text =
      fmt::format("dp{} tp{}{} pp{}", l.dp, l.shard.tp, c.sequence_parallel ? " sp" : "", l.pp);
  if (l.shard.cp > 1) text += fmt::format(" cp{}", l.shard.cp);
  if (l.shard.ep > 1) text += fmt::format(" ep{}", l.shard.ep);
  if (l.vpp > 1) text += fmt::format(" v{}", l.vpp);
  text += fmt::format(" mb{}", l.shard.micro_batch);
  if (l.zero > 0) text += fmt::format(" zero{}", l.zero);
  if (c.recompute == RecomputeKind::kCore) text += " recompute=core";
  if (c.recompute == RecomputeKind::kFull) text += " recompute=full";
  if (!l.shard.regathers) text += " keeps-gathered";
  if (!l.scatters_hops) text += " whole-hops";
  const auto tier = [&](const char* axis, NetworkTier t) {
    if (t != NetworkTier::kByPlace)
      text += fmt::format(" {}:{}", axis, t == NetworkTier::kNic ? "nic" : "nvlink");
  };
  tier("tp", l.shard.tp_tier);
  tier("pp", l.pp_tier);
  tier("dp", l.dp_tier);
  if (l.shard.tp_overlap == TpOverlap::kRing) text += " tp-ring";
  if (l.shard.tp_overlap == TpOverlap::kPipe) text += " tp-pipe";
  if (l.dp_overlap == DpOverlap::kBackward) text += " dp-overlap";
  if (l.offload.weights) text += " weights>host";
  if (l.offload.activations) text += " activations>host";
  if (l.offload.optimizer) text += " optimizer>host";
  return text;
}

}  // namespace meshwright
