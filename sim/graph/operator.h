// Operators and buffers: the vocabulary in which a model is written down once.
//
// The cost model reads an operator's figures, the memory replay its buffers, and exec has one
// function per OpKind. A new operator is one enumerator here, one line where a block lists it, one
// price (sim/cost) and one function (exec/model).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/dtype.h"
#include "sim/core/units.h"

namespace meshwright {

enum class OpKind : uint8_t {
  kLoadIds,               ///< -> ids [T]
  kLoadLabels,            ///< -> labels [T]
  kEmbedding,             ///< ids -> out [T, D]; rows of other vocabulary shards are zero
  kEmbeddingBackward,     ///< dout, ids; adds to the table's gradient
  kZero,                  ///< -> out, all zero
  kRmsNorm,               ///< x -> y, rstd
  kRmsNormBackward,       ///< dy, x, rstd [, g] -> dx: added to it, or g + dx; adds to the weight's
                          ///< gradient
  kLinear,                ///< x [, residual] -> y = [residual +] x W^T
  kLinearBackwardInput,   ///< dy -> dx = dy W
  kLinearBackwardWeight,  ///< dy, x; adds dy^T x to the weight's gradient
  kAddBias,               ///< y += bias
  kBiasBackward,          ///< dy; adds its column sums to the bias's gradient
  kRope,                  ///< qkv, in place on q and k
  kRopeBackward,          ///< dq, dk, dv -> dqkv, packed
  kAttention,             ///< qkv -> out, lse (causal)
  kAttentionBackward,     ///< dout, qkv, out, lse -> dq, dk, dv
  kSwiGlu,                ///< gate_up -> act
  kSwiGluBackward,        ///< gate_up (becomes its gradient), dact
  kAdd,                   ///< y += x
  kLogitMax,              ///< logits -> row_max [T]
  kLogitSum,  ///< logits (become exponentials), row_max, labels -> stats [2, T]: sum, target logit
  kCrossEntropy,   ///< logits (become their gradient), stats, labels; adds to the step's loss
  kAllReduce,      ///< in place, over the tensor-parallel group
  kAllReduceMax,   ///< in place
  kAllGather,      ///< x [T/t, D] -> y [T, D]
  kReduceScatter,  ///< x [T, D] (clobbered) -> y [T/t, D]
};

[[nodiscard]] std::string_view to_string(OpKind kind);
[[nodiscard]] constexpr bool is_collective(OpKind k) { return k >= OpKind::kAllReduce; }
[[nodiscard]] constexpr bool is_linear(OpKind k) {
  return k == OpKind::kLinear || k == OpKind::kLinearBackwardInput ||
         k == OpKind::kLinearBackwardWeight;
}

/// The packed parameters of a block: what one operator reads as one matrix.
enum class ParamSlot : uint8_t {
  kNone,
  kTable,      ///< [V, D]
  kAttnNorm,   ///< [D]
  kQkv,        ///< [(N + 2K)H, D]: query, key, value rows
  kQkvBias,    ///< [(N + 2K)H]
  kAttnOut,    ///< [D, N*H]
  kFfnNorm,    ///< [D]
  kGateUp,     ///< [2F, D]: gate rows, up rows
  kDown,       ///< [D, F]
  kFinalNorm,  ///< [D]
  kLmHead,     ///< [V, D]; the table of the embedding when tied
};
inline constexpr int kNumParamSlots = 11;

using BufferId = int;

struct BufferSpec {
  std::string name;
  std::vector<int64_t> shape;
  DType dtype = DType::kFloat32;
  [[nodiscard]] int64_t bytes() const;
};

/// One operator on one rank's shard of one micro-batch.
struct Operator {
  OpKind kind;
  std::vector<BufferId> inputs;
  std::vector<BufferId> outputs;  ///< Allocated when not alive; otherwise written in place.
  ParamSlot param = ParamSlot::kNone;
  int64_t m = 0, n = 0, k = 0;  ///< Of a matmul: [m, k] x [k, n]. Attention: m = S, n = H.
  Flop flop;                    ///< Multiply and add count as two.
  Bytes bytes;      ///< Read and written, for memory-bound operators; payload, for collectives.
  Bytes workspace;  ///< Allocated and freed inside the operator.
};

/// An operator with the buffers that come alive before it and die after it.
struct OperatorStep {
  Operator op;
  std::vector<BufferId> allocates;
  std::vector<BufferId> releases;
};

}  // namespace meshwright
