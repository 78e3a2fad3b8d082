// Operator times on this machine, from real training steps of small models.
//
// As many ranks as the machine has cores train the same model side by side, each on its own, and
// every operator is timed where it runs: with the caches, memory traffic and buffers of a training
// step, not in a loop of its own. A tensor-parallel shard is a model with fewer heads and a
// narrower feed-forward, so the shapes of tp 2 and 4 are among the samples.
#pragma once

#include <vector>

#include "exec/comm/communicator.h"
#include "sim/plan/plan.h"
#include "sim/spec/calibration.h"

namespace meshwright {

/// One small model: the shapes that its operators take. `tp` says of which tensor-parallel degree
/// it is a shard.
struct BenchModel {
  int64_t micro_batch, seq_len, d_model, num_heads, num_kv_heads, head_dim, d_ff, vocab_size;
};

/// The model whose shards are measured, whole (micro_batch sequences of 256 tokens).
[[nodiscard]] BenchModel sharded_model(int64_t micro_batch);
/// Micro-batches that it is measured with.
inline constexpr int64_t kBenchMicroBatches[] = {1, 2, 4, 8};
/// Steps of a bench: so many to warm up, so many measured.
inline constexpr int kBenchWarmupSteps = 1;
inline constexpr int kBenchSteps = 4;

/// A plan for one or several ranks that trains `bench` with tensor parallelism `tp` over two
/// micro-batches per step.
[[nodiscard]] Plan bench_plan(const BenchModel& bench, int tp, bool sp);

[[nodiscard]] double median(std::vector<double> values);

/// Fills matmul, attention, stream, adamw, host and oversubscription figures. Every rank of `world`
/// calls it; ranks beyond `cores` wait, except for the oversubscription figure. The result is the
/// same on all ranks.
void measure_operators(CommWorld& world, int cores, Calibration& calibration);

}  // namespace meshwright
