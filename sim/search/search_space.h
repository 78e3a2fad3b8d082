// SearchSpace: which layouts a search evaluates, as lists of choices per axis.
//
// Reads: nothing. Feeds: search(). The degrees tp, pp, cp and the data-parallel rest multiply to
// the devices; what a combination forbids (a stage without layers, a group wider than its network)
// is left out of the space, so that everything in it is evaluated.
#pragma once

#include <vector>

#include "sim/search/candidate.h"

namespace meshwright {

/// How tensor-parallel sums travel, and whether activations between stages are sent in parts:
/// Calculon's "ar", "p2p_rs_ag", "rs_ag".
enum class TpForm : uint8_t {
  kAllReduce,         ///< Every tensor rank sends the whole activation to the next stage.
  kScatteredHops,     ///< Each sends its part.
  kSequenceParallel,  ///< Reduce-scatter and all-gather, activations between them sharded.
};

struct SearchSpace {
  double devices = 1;
  /// Sequences per step: with `whole_batch`, exactly; otherwise the largest multiple of the
  /// data-parallel degree up to it.
  double global_batch = 1;
  bool whole_batch = true;
  std::vector<double> tp, pp, cp{1}, ep{1};  ///< Degrees to try, ascending.
  bool equal_stages = true;                  ///< pp divides the layers.
  bool every_interleave = false;             ///< All divisors of a stage's layers; otherwise one.
  double max_interleave = 1e9;
  bool fills_interleave = true;  ///< Interleaving needs a multiple of pp micro-batches.
  std::vector<StepSchedule> schedules{StepSchedule::kOneFOneB};
  std::vector<RecomputeKind> recompute{RecomputeKind::kNone, RecomputeKind::kFull};
  std::vector<TpForm> tp_forms{TpForm::kScatteredHops, TpForm::kSequenceParallel};
  bool drops_idle_forms = true;  ///< Without tensor parallelism, one form alone.
  bool keeps_gathered = false;   ///< Also keep what sequence parallelism gathers, for backward.
  std::vector<int> zero{0, 1};   ///< Stages to try where there is something to shard over.
  std::vector<NetworkTier> tiers{NetworkTier::kByPlace};  ///< Per axis of more than one rank.
  std::vector<TpOverlap> tp_overlap{TpOverlap::kFramework};
  std::vector<DpOverlap> dp_overlap{DpOverlap::kFramework};
  bool offload = false;  ///< Also each of weights, activations and optimizer on the host.
};

/// The divisors of n, ascending.
[[nodiscard]] std::vector<double> divisors_of(double n);

/// The executions that Calculon's optimal-execution search walks (SC'23,
/// doi:10.1145/3581784.3607102; its choices per axis, read from its program): tp divides devices,
/// width and heads, pp the layers, every interleave of a stage, full / attention-only / no
/// recompute, optimizer sharding, three TP forms (the last with and without keeping what it
/// gathers, unless all is recomputed), every micro-batch, two networks per axis. 88,484 for GPT-3
/// 175B on 64 devices with a batch of 64.
[[nodiscard]] SearchSpace calculon_space(const ModelShape& model, double devices, double max_batch);

/// The same with its overlap and offload choices: 6,582,816 on 512 devices with a batch of 512.
[[nodiscard]] SearchSpace calculon_offload_space(const ModelShape& model,
                                                 double devices,
                                                 double max_batch);

}  // namespace meshwright
