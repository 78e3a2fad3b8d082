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
#include "sim/spec/logical_tensors.h"

namespace meshwright {

/// The ranks that a collective operator runs over.
enum class OpGroup : uint8_t { kTp, kCp, kEp };

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
  kCrossEntropy,       ///< logits (become their gradient), stats, labels; adds to the step's loss
  kPosition,           ///< x += rows of the position table, in place
  kPositionBackward,   ///< dout; adds to the table's gradient
  kLayerNorm,          ///< x -> y, stats [2, T]: mean, rstd
  kLayerNormBackward,  ///< dy, x, stats -> dx (added to); adds to weight's and bias's gradients
  kHeadNorm,           ///< qkv -> qk, rstd: RMSNorm over each query and key head
  kHeadNormBackward,   ///< dq, dk, qkv, rstd -> in place; adds to the weights' gradients
  kGeGlu,              ///< gate_up -> act
  kGeGluBackward,      ///< gate_up (becomes its gradient), dact
  kGelu,               ///< up -> act
  kGeluBackward,       ///< up (becomes its gradient), dact
  kRelu,               ///< up -> act
  kReluBackward,       ///< up (becomes its gradient), dact
  kDropout,            ///< x (in place, or -> y), mask [bytes]; param names whose output it is
  kDropoutBackward,    ///< mask [, dy] -> dx
  kSoftcap,            ///< x = c tanh(x / c), in place
  kSoftcapBackward,    ///< y, dy in place
  kScores,             ///< qkv -> scores [T N, S]: attention without a fused kernel
  kScoresBackward,     ///< dscores, qkv -> dq, dk
  kSoftmax,            ///< in place
  kSoftmaxBackward,    ///< probs, dprobs in place
  kWeightedValues,     ///< probs, qkv -> out
  kWeightedValuesBackward,  ///< dout, probs, qkv -> dprobs, dv
  kLatentKeys,              ///< kv, latent -> k [T, N H]: shared rotary part beside each head's own
  kLatentKeysBackward,      ///< dk, dv -> dkv, dlatent (its rotary columns)
  kRouter,                  ///< logits -> weights [T, k], index [T, k]
  kRouterBackward,          ///< dweights, weights, index -> logits' gradient
  kPermute,                 ///< x, index -> rows in order of their expert [T k, D]
  kPermuteBackward,         ///< drows, index -> dx
  kUnpermute,               ///< rows, weights, index -> y [T, D]
  kUnpermuteBackward,       ///< dy, rows, weights, index -> drows, dweights
  kAllReduce,               ///< in place
  kAllReduceMax,            ///< in place
  kAllGather,               ///< x [T/t, D] -> y [T, D]
  kReduceScatter,           ///< x [T, D] (clobbered) -> y [T/t, D]
  kAllToAll,  ///< rows to the ranks of their experts, or sequence shards to head shards
  kRingKv,  ///< keys and values of the other ranks, piece by piece -> the two pieces at hand; runs
            ///< behind the attention that follows
};

[[nodiscard]] std::string_view to_string(OpKind kind);
[[nodiscard]] constexpr bool is_collective(OpKind k) { return k >= OpKind::kAllReduce; }
/// Attention of the fused kernel.
[[nodiscard]] constexpr bool is_attention(OpKind k) {
  return k == OpKind::kAttention || k == OpKind::kAttentionBackward;
}
/// Batched matmuls of attention without a fused kernel.
[[nodiscard]] constexpr bool is_score_matmul(OpKind k) {
  return k == OpKind::kScores || k == OpKind::kScoresBackward || k == OpKind::kWeightedValues ||
         k == OpKind::kWeightedValuesBackward;
}
[[nodiscard]] constexpr bool is_linear(OpKind k) {
  return k == OpKind::kLinear || k == OpKind::kLinearBackwardInput ||
         k == OpKind::kLinearBackwardWeight;
}

/// The packed parameters of a block: what one operator reads as one matrix.
enum class ParamSlot : uint8_t {
  kNone,
  kTable,             ///< [V, D]
  kPosition,          ///< [rows, D]
  kAttnNorm,          ///< [D]
  kAttnNormBias,      ///< [D]
  kQkv,               ///< [(N + 2K)H, D]: query, key, value rows
  kQkvBias,           ///< [(N + 2K)H]
  kQueryNorm,         ///< [H]
  kKeyNorm,           ///< [H]
  kLatentDown,        ///< [R_q + R_kv + H_rope, D]: query and key/value rows (MLA)
  kQueryDownNorm,     ///< [R_q]
  kQueryUp,           ///< [N*(H_nope + H_rope), R_q]
  kKvDownNorm,        ///< [R_kv]
  kKvUp,              ///< [N*(H_nope + H_v), R_kv]
  kAttnOut,           ///< [D, N*H]
  kAttnOutBias,       ///< [D]
  kPostAttnNorm,      ///< [D]
  kFfnNorm,           ///< [D]
  kFfnNormBias,       ///< [D]
  kGateUp,            ///< [2F, D]: gate rows, up rows; [F, D] without a gate
  kUpBias,            ///< [F]
  kDown,              ///< [D, F]
  kDownBias,          ///< [D]
  kPostFfnNorm,       ///< [D]
  kRouter,            ///< [E, D]
  kRouterBias,        ///< [E]
  kExpertGateUp,      ///< [E, 2F, D]
  kExpertDown,        ///< [E, D, F]
  kSharedGateUp,      ///< [2F_s, D]
  kSharedDown,        ///< [D, F_s]
  kSharedExpertGate,  ///< [1, D]
  kFinalNorm,         ///< [D]
  kFinalNormBias,     ///< [D]
  kLmHead,            ///< [V, D]; the table of the embedding when tied
};
inline constexpr int kNumParamSlots = static_cast<int>(ParamSlot::kLmHead) + 1;

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
  AdapterHalf adapter = AdapterHalf::kNone;  ///< The operator reads this half of param's adapter.
  int64_t m = 0, n = 0, k = 0;   ///< Of a matmul: [m, k] x [k, n]. Attention: m = S, n = H.
  int64_t groups = 1;            ///< Matmuls of that size in one grouped launch (experts).
  Flop flop;                     ///< Multiply and add count as two.
  OpGroup group = OpGroup::kTp;  ///< Of a collective.
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
