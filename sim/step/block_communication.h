// What one block's tensor-, context- and expert-parallel collectives add to a step.
//
// Reads: StepProblem, ShardLayout and the work that collectives may hide behind. Feeds: the cost of
// a shard; ring_bandwidth() also the data-parallel exchange.
//
// Model: rings over NVLink or the NICs, of which a framework leaves a share exposed, or as much as
// the matmuls beside them do not cover.
#pragma once

#include "sim/step/step_inputs.h"

namespace meshwright {

/// One micro-batch of a block on one rank.
struct BlockWork {
  double tokens = 0;
  double tp_collectives = 0;    ///< Tensor-parallel ones of one forward.
  double matmul_forward_s = 0;  ///< That they may run behind.
  double forward_repeats = 0;   ///< Forwards that recomputation adds.
};

/// Exposed seconds of forward, recompute and backward together.
struct BlockCommunication {
  double tp_forward_s = 0;  ///< Of one forward alone.
  double tp_s = 0;
  double cp_s = 0;
  double ep_s = 0;
};

[[nodiscard]] BlockCommunication block_communication(const StepProblem& problem,
                                                     const ShardLayout& shard,
                                                     const BlockShape& block,
                                                     const BlockWork& work);

/// Bytes/s that one rank of a ring of `size` ranks sees, when consecutive ranks of the ring are
/// `stride` apart: NVLink inside its domain, the NICs of the ring's members on a node beyond.
[[nodiscard]] double ring_bandwidth(const StepProblem& problem,
                                    double size,
                                    double stride,
                                    double nic_efficiency,
                                    NetworkTier tier = NetworkTier::kByPlace);

}  // namespace meshwright
