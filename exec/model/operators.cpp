// SPDX-License-Identifier: Apache-2.0
#include "exec/model/operators.h"

#include <ATen/ops/empty.h>

#include "exec/model/operator_args.h"
#include "kernels/rope/rope.h"
#include "sim/spec/rope_frequencies.h"

namespace meshwright {

RopeTables make_rope_tables(const ModelSpec& model, int64_t seq_len) {
  RopeTables t{at::empty({seq_len, model.head_dim / 2}), at::empty({seq_len, model.head_dim / 2})};
  if (model.positions == PositionKind::kLearned) {  // no rotation: dq, dk, dv are only packed
    t.cos.fill_(1);
    t.sin.zero_();
    return t;
  }
  const Result<std::vector<double>> frequencies = rope_frequencies(model);
  MW_CHECK(frequencies.has_value(), "a plan whose rotation the worker refuses");
  kernels::rope_tables(t.cos.mutable_data_ptr<float>(),
                       t.sin.mutable_data_ptr<float>(),
                       seq_len,
                       model.head_dim / 2,
                       frequencies->data());
  return t;
}

bool allocates_own_outputs(OpKind kind) {
  return kind == OpKind::kAttention || kind == OpKind::kAttentionBackward;
}

void run_operator(const Operator& op, OperatorContext& ctx) {
  const OperatorArgs a(op, ctx);
  switch (op.kind) {
    case OpKind::kLoadIds:
      return operators::load_ids(a);
    case OpKind::kLoadLabels:
      return operators::load_labels(a);
    case OpKind::kEmbedding:
      return operators::embedding(a);
    case OpKind::kEmbeddingBackward:
      return operators::embedding_backward(a);
    case OpKind::kZero:
      return operators::zero(a);
    case OpKind::kRmsNorm:
      return operators::rms_norm(a);
    case OpKind::kRmsNormBackward:
      return operators::rms_norm_backward(a, op.inputs.size() > 3);
    case OpKind::kLayerNorm:
      return operators::layer_norm(a);
    case OpKind::kLayerNormBackward:
      return operators::layer_norm_backward(a, op.inputs.size() > 3);
    case OpKind::kHeadNorm:
      return operators::head_norm(a);
    case OpKind::kHeadNormBackward:
      return operators::head_norm_backward(a);
    case OpKind::kPosition:
      return operators::position(a);
    case OpKind::kPositionBackward:
      return operators::position_backward(a);
    case OpKind::kDropout:
      return operators::dropout(a);
    case OpKind::kDropoutBackward:
      return operators::dropout_backward(a);
    case OpKind::kGelu:
      return operators::gelu(a);
    case OpKind::kGeluBackward:
      return operators::gelu_backward(a);
    case OpKind::kRelu:
      return operators::relu(a);
    case OpKind::kReluBackward:
      return operators::relu_backward(a);
    case OpKind::kLinear:
      return operators::linear(a, op.inputs.size() > 1);
    case OpKind::kLinearBackwardInput:
      return operators::linear_backward_input(a);
    case OpKind::kLinearBackwardWeight:
      return operators::linear_backward_weight(a);
    case OpKind::kAddBias:
      return operators::add_bias(a);
    case OpKind::kBiasBackward:
      return operators::bias_backward(a);
    case OpKind::kRope:
      return operators::rope(a);
    case OpKind::kRopeBackward:
      return operators::rope_backward(a);
    case OpKind::kAttention:
      return run_attention(op, ctx);
    case OpKind::kAttentionBackward:
      return run_attention_backward(op, ctx);
    case OpKind::kSwiGlu:
      return operators::swiglu(a);
    case OpKind::kSwiGluBackward:
      return operators::swiglu_backward(a);
    case OpKind::kAdd:
      return operators::add(a);
    case OpKind::kLogitMax:
      return operators::logit_max(a);
    case OpKind::kLogitSum:
      return operators::logit_sum(a);
    case OpKind::kCrossEntropy:
      return operators::cross_entropy(a);
    case OpKind::kAllReduce:
      return operators::all_reduce(a);
    case OpKind::kAllReduceMax:
      return operators::all_reduce_max(a);
    case OpKind::kAllGather:
      return operators::all_gather(a);
    case OpKind::kReduceScatter:
      return operators::reduce_scatter(a);
    default:
      // executor_refuses() lets no plan through that holds one of the others.
      MW_CHECK(false, std::string(to_string(op.kind)));
  }
}

}  // namespace meshwright
