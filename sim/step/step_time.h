// evaluate_step(): the time of one training step from the cost of a shard and the rest of the
// layout, in closed form.
//
// Pipeline: T = m max_r S_r + (sum_r S_r - max_r S_r) / v, which equals the event simulation of
// 1F1B and of Megatron's interleaved order when only the end stages differ and m is a multiple of
// p. Zero-bubble schedules keep a share of that bubble. Data parallelism: a ring per step, hidden
// by at most one micro-batch's backward and forward; fully sharded: gathers and a reduce-scatter
// per micro-batch against the compute of the same layer.
#pragma once

#include "sim/step/shard_cost.h"

namespace meshwright {

/// Seconds by StepReport's terms; they add up to the step.
struct StepTerms {
  double compute_s = 0;
  double recompute_s = 0;
  double exposed_tp_s = 0;
  double exposed_cp_s = 0;
  double exposed_ep_s = 0;
  double exposed_pp_s = 0;
  double exposed_dp_s = 0;
  double bubble_s = 0;
  double optimizer_s = 0;
  double host_s = 0;
  double other_s = 0;  ///< Stragglers.

  [[nodiscard]] double total_s() const {
    return compute_s + recompute_s + exposed_tp_s + exposed_cp_s + exposed_ep_s + exposed_pp_s +
           exposed_dp_s + bubble_s + optimizer_s + host_s + other_s;
  }
};

/// Layers of the fullest, the first and the last stage. What does not divide is split as Megatron
/// does when embedding and loss count as a layer; else the fullest stage is rounded up.
void split_layers(double layers, StepLayout& layout);

/// Needs split_layers() first.
[[nodiscard]] StepTerms evaluate_step(const StepProblem& problem,
                                      const ShardCost& shard,
                                      const StepLayout& layout);

}  // namespace meshwright
