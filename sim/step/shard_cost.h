// ShardCost: what one block, the embedding and the head cost on one rank, per micro-batch.
//
// Reads: StepProblem and a ShardLayout. Feeds: evaluate_step(), which combines it over a pipeline
// and data-parallel replicas without looking at shapes again: a search prices few shards and
// evaluates many layouts.
//
// Model: matmuls by tiles and waves; attention by FLOPs when fused, by two full matmuls and the
// score matrix's traffic when not; elementwise by bytes; collectives by block_communication(). The
// host issues a layer ahead
// of the device; where issuing forward, recompute and backward takes longer than running them, that
// shows: a p-norm of the two per layer, since the queue decouples the phases.
// Ignored: imbalance between experts, congestion, clocks that fall under load.
#pragma once

#include "sim/step/step_inputs.h"

namespace meshwright {

/// Seconds of one micro-batch through one average block. Forward, recompute and backward.
struct BlockCost {
  double forward_s = 0;
  double backward_s = 0;
  double weight_grad_s = 0;  ///< Part of backward_s that no other stage waits for.
  double recompute_s = 0;
  double tp_forward_s = 0;  ///< Exposed.
  double tp_s = 0;          ///< Exposed, of forward, recompute and backward together.
  double cp_s = 0;
  double ep_s = 0;
  double host_s = 0;        ///< By which issuing exceeds running.
  double dense_params = 0;  ///< On this rank.
  double expert_params = 0;

  [[nodiscard]] double device_s() const {
    return forward_s + recompute_s + backward_s + tp_s + cp_s + ep_s;
  }
  [[nodiscard]] double total_s() const { return device_s() + host_s; }
};

struct ShardCost {
  BlockCost block;  ///< Mean over the model's layers.
  double layers = 0;
  double head_s = 0;  ///< Final norm, output projection, loss: forward and backward.
  double embed_s = 0;
  double head_params = 0;        ///< Its table, which a tied one shares with the embedding.
  double final_norm_params = 0;  ///< On the head's rank.
  double embed_params = 0;
  double mtp_s = 0;        ///< Multi-token prediction: its layers and heads, on the last stage.
  double hop_bytes = 0;    ///< Of one activation between two stages, a tensor rank's part.
  double saved_bytes = 0;  ///< That the mean layer keeps for backward.
};

[[nodiscard]] ShardCost price_shard(const StepProblem& problem, const ShardLayout& shard);

}  // namespace meshwright
