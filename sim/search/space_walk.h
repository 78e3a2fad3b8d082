// The order in which a space's layouts are visited, in three levels: what fixes memory, what fixes
// a shard's cost, and the rest.
//
// Internal to sim/search: search() computes at each level, for_each_candidate() only at the last.
#pragma once

#include <cmath>
#include <vector>

#include "sim/search/search_space.h"

namespace meshwright {

/// One combination of degrees and schedule: what a thread walks.
struct SpaceGroup {
  double tp = 1, pp = 1, cp = 1, ep = 1, dp = 1;
  StepSchedule schedule = StepSchedule::kOneFOneB;
};

[[nodiscard]] inline std::vector<SpaceGroup> groups_of(const StepProblem& problem,
                                                       const SearchSpace& space) {
  std::vector<SpaceGroup> groups;
  const double layers = problem.model.num_layers();
  for (const double tp : space.tp) {
    for (const double pp : space.pp) {
      if (pp > layers || (space.equal_stages && std::fmod(layers, pp) != 0)) continue;
      for (const double cp : space.cp) {
        const double model_parallel = tp * pp * cp;
        if (model_parallel > space.devices || std::fmod(space.devices, model_parallel) != 0)
          continue;
        const double dp = space.devices / model_parallel;
        if (dp > space.global_batch) continue;
        if (space.whole_batch && std::fmod(space.global_batch, dp) != 0) continue;
        for (const double ep : space.ep) {
          if (std::fmod(dp * cp * tp, ep) != 0 || (ep > 1 && std::fmod(ep, tp) != 0)) continue;
          for (const StepSchedule schedule : space.schedules) {
            if (schedule != StepSchedule::kOneFOneB && pp == 1) continue;
            groups.push_back({tp, pp, cp, ep, dp, schedule});
          }
        }
      }
    }
  }
  return groups;
}

/// With fewer a zero-bubble schedule does not fill its pipeline (arXiv:2401.10241).
[[nodiscard]] inline double fewest_micro_batches(const SpaceGroup& g) {
  switch (g.schedule) {
    case StepSchedule::kOneFOneB:
      break;
    case StepSchedule::kZeroBubble1:
      return g.pp;
    case StepSchedule::kZeroBubble2:
    case StepSchedule::kZeroBubbleV:
      return 2 * g.pp - 1;
  }
  return 1;
}

/// Calls `memory(candidate)` where what fixes memory has changed, `shard(candidate, key)` where
/// what fixes a shard's cost has (`key` numbers it among those of the same tp, cp and ep), and
/// `leaf(candidate)` for each layout.
template <class Memory, class Shard, class Leaf>
void walk_group(const StepProblem& problem,
                const SearchSpace& space,
                const SpaceGroup& g,
                Memory&& memory,
                Shard&& shard,
                Leaf&& leaf) {
  const double layers = problem.model.num_layers();
  const double own = std::floor(space.global_batch / g.dp);
  const std::vector<double> micro_batches = divisors_of(own);
  std::vector<double> parts{1};
  if (space.every_interleave && g.pp > 1 && g.schedule == StepSchedule::kOneFOneB &&
      std::fmod(layers, g.pp) == 0) {
    parts = divisors_of(layers / g.pp);
  }
  const auto choices = [](const auto& all, bool several) {
    return several ? all : std::decay_t<decltype(all)>{all.front()};
  };
  const auto tp_tiers = choices(space.tiers, g.tp > 1);
  const auto pp_tiers = choices(space.tiers, g.pp > 1);
  const auto dp_tiers = choices(space.tiers, g.dp * g.cp > 1);
  const auto tp_overlaps = choices(space.tp_overlap, g.tp > 1);
  const auto dp_overlaps = choices(space.dp_overlap, g.dp * g.cp > 1);
  const int offloads = space.offload ? 8 : 1;

  StepCandidate c;
  StepLayout& l = c.layout;
  l.shard.tp = g.tp;
  l.shard.cp = g.cp;
  l.shard.ep = g.ep;
  l.shard.dp = g.dp;
  l.pp = g.pp;
  l.dp = g.dp;
  l.schedule = g.schedule;
  split_layers(layers, l);
  for (const double vpp : parts) {
    if (vpp > space.max_interleave) break;
    l.vpp = vpp;
    for (size_t r = 0; r < space.recompute.size(); ++r) {
      c.recompute = space.recompute[r];
      for (const int zero : space.zero) {
        if (zero > 0 && g.dp * g.cp == 1) continue;
        l.zero = l.shard.zero = zero;
        for (size_t f = 0; f < space.tp_forms.size(); ++f) {
          const TpForm form = space.tp_forms[f];
          const bool sharded = form == TpForm::kSequenceParallel;
          if (space.drops_idle_forms && g.tp == 1 && f > 0) continue;
          c.sequence_parallel = sharded && g.tp > 1;
          l.scatters_hops = form != TpForm::kAllReduce;
          const bool both = sharded && space.keeps_gathered && c.recompute != RecomputeKind::kFull;
          for (int again = 1; again >= (both ? 0 : 1); --again) {
            l.shard.regathers = again != 0;
            for (int offload = 0; offload < offloads; ++offload) {
              l.offload = {.weights = (offload & 1) != 0,
                           .activations = (offload & 2) != 0,
                           .optimizer = (offload & 4) != 0};
              if (l.offload.activations && c.recompute == RecomputeKind::kFull) continue;
              for (size_t b = 0; b < micro_batches.size(); ++b) {
                const double mb = micro_batches[b];
                if (std::fmod(mb * problem.work.seq, g.tp * g.cp) != 0) continue;
                if (space.fills_interleave && vpp > 1 && std::fmod(own / mb, g.pp) != 0) continue;
                if (own / mb < fewest_micro_batches(g)) continue;
                l.shard.micro_batch = mb;
                l.micro_batches = own / mb;
                memory(std::as_const(c));
                size_t key = ((b * space.recompute.size() + r) * space.tp_forms.size() + f) * 2 +
                             static_cast<size_t>(again);
                key *= tp_overlaps.size() * tp_tiers.size();
                for (const TpOverlap overlap : tp_overlaps) {
                  l.shard.tp_overlap = overlap;
                  for (const NetworkTier tp_tier : tp_tiers) {
                    l.shard.tp_tier = tp_tier;
                    shard(std::as_const(c), key++);
                    for (const NetworkTier pp_tier : pp_tiers) {
                      l.pp_tier = pp_tier;
                      for (const NetworkTier dp_tier : dp_tiers) {
                        l.dp_tier = dp_tier;
                        for (const DpOverlap dp_overlap : dp_overlaps) {
                          l.dp_overlap = dp_overlap;
                          leaf(std::as_const(c));
                        }
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace meshwright
