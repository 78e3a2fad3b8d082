// The least memory that a kind of layout needs: what "does it fit" means before any search.
//
// Reads: a Problem and its CostModel. Feeds: decision_flow, hardware_guide. The least is that of
// micro-batches of one sequence, full recompute, sequence parallelism and the highest ZeRO stage
// that plans know, with the pipeline that fills the fewest micro-batches (1F1B).
#pragma once

#include <optional>

#include "sim/mesh/state_bytes.h"
#include "sim/plan/plan.h"
#include "sim/simulator/simulate.h"

namespace meshwright {

/// Bytes per parameter on each of `ranks` that share states under ZeRO `stage`: optimizer state
/// from stage 1, gradients from 2, weights from 3 (Rajbhandari et al., arXiv:1910.02054). BF16 with
/// FP32 gradients: 18; 6 + 12/d, 2 + 16/d, 18/d.
[[nodiscard]] double sharded_state_bytes(const StateBytes& bytes, int stage, double ranks);

struct LeastMemory {
  Layout layout;
  Bytes peak;  ///< Of the fullest rank.
};

/// Of the layouts with `tp` and `pp` on all devices of `problem`; without sharding where `sharded`
/// is false. Nothing where no such layout is legal.
[[nodiscard]] std::optional<LeastMemory> least_memory(const std::shared_ptr<const Problem>& problem,
                                                      const CostModel& cost,
                                                      int tp,
                                                      int pp,
                                                      bool sharded);

/// The least over all tp up to a node and all pp from 1 to `max_pp`.
[[nodiscard]] std::optional<LeastMemory> least_memory(const std::shared_ptr<const Problem>& problem,
                                                      const CostModel& cost,
                                                      int max_tp,
                                                      int max_pp);

}  // namespace meshwright
