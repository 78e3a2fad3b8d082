// The operators: one function per OpKind, on ATen calls or on kernels/.
//
// Reads: an Operator of the ModelGraph. Nothing here decides an order, a lifetime or a collective:
// the lists do. No function allocates a tensor besides the operator's declared outputs and
// workspace, because the memory replay counts exactly those.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "exec/comm/communicator.h"
#include "exec/data/batch_reader.h"
#include "exec/model/parameter_store.h"
#include "sim/graph/model_graph.h"

namespace meshwright {

/// cos and sin of all positions, [seq_len, head_dim / 2] each; of a model with learned positions
/// those of no rotation.
struct RopeTables {
  at::Tensor cos;
  at::Tensor sin;
};
[[nodiscard]] RopeTables make_rope_tables(const ModelSpec& model, int64_t seq_len);

/// The loss of a step, as the cross-entropy operator needs it.
struct LossState {
  float grad_scale = 1;  ///< 1 / tokens that count.
  double sum = 0;        ///< Of this rank's micro-batches so far, not scaled.
};

/// What operators read besides their own lists. One per rank; the last four fields change from call
/// to call.
struct OperatorContext {
  const ModelGraph& graph;
  ParameterStore& params;
  const RopeTables& rope;
  Communicator& tp;
  BatchReader& batches;
  float norm_eps = 1e-5F;
  double dropout = 0;
  uint64_t seed = 1;  ///< Of dropout masks.

  LossState loss{};
  int64_t step = 0;
  int num_skipped_sums = 0;  ///< Fault injection: so many tensor-parallel sums are left out.
  int block = 0;
  int micro_batch = 0;
  std::vector<at::Tensor>* buffers = nullptr;  ///< By BufferId, of (block, micro_batch).
};

/// True for operators whose outputs are allocated inside (ATen's flash attention), not by the
/// caller.
[[nodiscard]] bool allocates_own_outputs(OpKind kind);

void run_operator(const Operator& op, OperatorContext& ctx);

/// The attention pair (exec/model/attention.cpp): packed qkv [T, (N + 2K)H] in, or normed queries
/// and keys [T, (N + K)H] before it; causal, grouped queries.
void run_attention(const Operator& op, OperatorContext& ctx);
void run_attention_backward(const Operator& op, OperatorContext& ctx);

}  // namespace meshwright
