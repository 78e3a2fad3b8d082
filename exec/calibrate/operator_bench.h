// Operator times on this machine, from real training steps of small models.
//
// As many ranks as the machine has cores train the same model side by side, each on its own, and every operator is
// timed where it runs: with the caches, memory traffic and buffers of a training step, not in a loop of its own. A
// tensor-parallel shard is a model with fewer heads and a narrower feed-forward, so the shapes of tp 2 and 4 are
// among the samples.
#pragma once

#include <vector>

#include "exec/comm/communicator.h"
#include "sim/spec/calibration.h"

namespace meshwright {

/// One small model: the shapes that its operators take.
struct BenchModel {
  int64_t micro_batch, seq_len, d_model, num_heads, num_kv_heads, head_dim, d_ff, vocab_size;
};

/// The shapes that models of up to a few million parameters use on a few ranks.
[[nodiscard]] std::vector<BenchModel> bench_models();

/// Fills matmul, attention, stream, adamw, host and oversubscription figures. Every rank of `world` calls it; ranks
/// beyond `cores` wait, except for the oversubscription figure. The result is the same on all ranks.
void measure_operators(CommWorld& world, int cores, Calibration& calibration);

}  // namespace meshwright
