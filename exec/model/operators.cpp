// SPDX-License-Identifier: Apache-2.0
#include "exec/model/operators.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "kernels/activation/activation.h"
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/embedding/embedding.h"
#include "kernels/headnorm/headnorm.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/position/position.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rope/rope.h"
#include "kernels/swiglu/swiglu.h"

namespace meshwright {
namespace {

/// An operator's tensors by position, as kernels and matmuls want them.
class Args {
 public:
  Args(const Operator& op, OperatorContext& ctx) : op_(op), ctx_(ctx) {}

  [[nodiscard]] at::Tensor& in(size_t i) const {
    return (*ctx_.buffers)[static_cast<size_t>(op_.inputs[i])];
  }
  [[nodiscard]] at::Tensor& out(size_t i) const {
    return (*ctx_.buffers)[static_cast<size_t>(op_.outputs[i])];
  }
  [[nodiscard]] const float* in_f32(size_t i) const { return in(i).const_data_ptr<float>(); }
  [[nodiscard]] float* out_f32(size_t i) const { return out(i).mutable_data_ptr<float>(); }
  [[nodiscard]] const int64_t* in_i64(size_t i) const { return in(i).const_data_ptr<int64_t>(); }
  [[nodiscard]] int64_t* out_i64(size_t i) const { return out(i).mutable_data_ptr<int64_t>(); }

  [[nodiscard]] size_t num_inputs() const { return op_.inputs.size(); }

  [[nodiscard]] ParamSlot slot() const { return op_.param; }
  [[nodiscard]] const ParamView& param() const { return ctx_.params.view(ctx_.block, op_.param); }
  [[nodiscard]] const float* weight(ParamSlot slot) const {
    return ctx_.params.view(ctx_.block, slot).weight.const_data_ptr<float>();
  }
  [[nodiscard]] const float* weight() const { return weight(op_.param); }
  [[nodiscard]] const at::Tensor& grad() const { return ctx_.params.grad(ctx_.block, op_.param); }
  [[nodiscard]] float* grad_f32(ParamSlot slot) const {
    return ctx_.params.grad(ctx_.block, slot).mutable_data_ptr<float>();
  }
  [[nodiscard]] float* grad_f32() const { return grad_f32(op_.param); }

  [[nodiscard]] OperatorContext& ctx() const { return ctx_; }
  [[nodiscard]] const ModelGraph& graph() const { return ctx_.graph; }

 private:
  const Operator& op_;
  OperatorContext& ctx_;
};

void load_ids(const Args& a) {
  a.ctx().batches.read(a.ctx().step, a.ctx().micro_batch, a.out_i64(0), nullptr);
}

void load_labels(const Args& a) {
  a.ctx().batches.read(a.ctx().step, a.ctx().micro_batch, nullptr, a.out_i64(0));
}

void embedding(const Args& a) {
  const ModelGraph& g = a.graph();
  kernels::embedding_forward(a.weight(),
                             a.in_i64(0),
                             g.vocab_begin,
                             g.vocab_rows,
                             a.out_f32(0),
                             a.out(0).size(0),
                             a.out(0).size(1));
}

void embedding_backward(const Args& a) {
  const ModelGraph& g = a.graph();
  kernels::embedding_backward(a.in_f32(0),
                              a.in_i64(1),
                              g.vocab_begin,
                              g.vocab_rows,
                              a.grad_f32(),
                              a.in(0).size(0),
                              a.in(0).size(1));
}

void zero(const Args& a) { a.out(0).zero_(); }

void rms_norm(const Args& a) {
  kernels::rmsnorm_forward(a.in_f32(0),
                           a.weight(),
                           a.out_f32(0),
                           a.out_f32(1),
                           a.in(0).size(0),
                           a.in(0).size(1),
                           a.ctx().norm_eps);
}

void rms_norm_backward(const Args& a, bool residual) {
  // The gradient is added to what is there, or (split backward) to a copy of the fourth input.
  if (residual) a.out(0).copy_(a.in(3));
  kernels::rmsnorm_backward(a.in_f32(0),
                            a.in_f32(1),
                            a.weight(),
                            a.in_f32(2),
                            a.out_f32(0),
                            a.grad_f32(),
                            a.in(0).size(0),
                            a.in(0).size(1));
}

/// Of the slot that holds a LayerNorm's weight.
ParamSlot bias_of(ParamSlot weight) {
  switch (weight) {
    case ParamSlot::kAttnNorm:
      return ParamSlot::kAttnNormBias;
    case ParamSlot::kFfnNorm:
      return ParamSlot::kFfnNormBias;
    default:
      return ParamSlot::kFinalNormBias;
  }
}

// stats [2, T]: means, then reciprocal deviations.
void layer_norm(const Args& a) {
  const int64_t rows = a.in(0).size(0);
  kernels::layernorm_forward(a.in_f32(0),
                             a.weight(),
                             a.weight(bias_of(a.slot())),
                             a.out_f32(0),
                             a.out_f32(1),
                             a.out_f32(1) + rows,
                             rows,
                             a.in(0).size(1),
                             a.ctx().norm_eps);
}

void layer_norm_backward(const Args& a, bool residual) {
  if (residual) a.out(0).copy_(a.in(3));
  const int64_t rows = a.in(0).size(0);
  kernels::layernorm_backward(a.in_f32(0),
                              a.in_f32(1),
                              a.weight(),
                              a.in_f32(2),
                              a.in_f32(2) + rows,
                              a.out_f32(0),
                              a.grad_f32(),
                              a.grad_f32(bias_of(a.slot())),
                              rows,
                              a.in(0).size(1));
}

kernels::HeadCounts head_counts(const ModelGraph& g) {
  return {.queries = g.num_heads, .keys = g.num_kv_heads, .dim = g.head_dim};
}

void head_norm(const Args& a) {
  kernels::headnorm_forward(a.in_f32(0),
                            a.weight(ParamSlot::kQueryNorm),
                            a.weight(ParamSlot::kKeyNorm),
                            a.out_f32(0),
                            a.out_f32(1),
                            a.in(0).size(0),
                            head_counts(a.graph()),
                            a.ctx().norm_eps);
}

void head_norm_backward(const Args& a) {
  kernels::headnorm_backward(a.in_f32(0),
                             a.in_f32(1),
                             a.in_f32(2),
                             a.in_f32(3),
                             a.weight(ParamSlot::kQueryNorm),
                             a.weight(ParamSlot::kKeyNorm),
                             a.out_f32(0),
                             a.grad_f32(ParamSlot::kQueryNorm),
                             a.grad_f32(ParamSlot::kKeyNorm),
                             a.out(0).size(0),
                             head_counts(a.graph()));
}

/// Under sequence parallelism a rank holds the tokens of its part of a micro-batch.
kernels::PositionRows position_rows(const Args& a, int64_t tokens) {
  const ModelGraph& g = a.graph();
  return {.first = g.sequence_shards ? a.ctx().tp.rank() * tokens : 0,
          .seq_len = g.seq_len,
          .offset = g.position_offset};
}

void position(const Args& a) {
  const int64_t tokens = a.out(0).size(0);
  kernels::add_positions(
      a.out_f32(0), a.weight(), tokens, a.out(0).size(1), position_rows(a, tokens));
}

void position_backward(const Args& a) {
  const int64_t tokens = a.in(0).size(0);
  kernels::positions_backward(
      a.in_f32(0), a.grad_f32(), tokens, a.in(0).size(1), position_rows(a, tokens));
}

void linear(const Args& a, bool residual) {
  if (residual) {
    at::addmm_out(a.out(0), a.in(1), a.in(0), a.param().weight_t);
  } else {
    at::mm_out(a.out(0), a.in(0), a.param().weight_t);
  }
}

void linear_backward_input(const Args& a) { at::mm_out(a.out(0), a.in(0), a.param().weight); }

void linear_backward_weight(const Args& a) { a.grad().addmm_(a.in(0).t(), a.in(1)); }

void add_bias(const Args& a) {
  kernels::add_bias(a.out_f32(0), a.weight(), a.out(0).size(0), a.out(0).size(1));
}

void bias_backward(const Args& a) {
  kernels::bias_backward(a.in_f32(0), a.grad_f32(), a.in(0).size(0), a.in(0).size(1));
}

// In place on the query and key heads of qkv, or on what a norm made of those alone.
void rope(const Args& a) {
  const ModelGraph& g = a.graph();
  kernels::rope_forward(a.out_f32(0),
                        a.ctx().rope.cos.const_data_ptr<float>(),
                        a.ctx().rope.sin.const_data_ptr<float>(),
                        a.out(0).size(0),
                        g.seq_len,
                        g.num_heads + g.num_kv_heads,
                        g.head_dim,
                        a.out(0).size(1));
}

// dq, dk, dv -> dqkv; or in place on dq and dk, where a norm's backward packs them.
void rope_backward(const Args& a) {
  const ModelGraph& g = a.graph();
  const float* cos = a.ctx().rope.cos.const_data_ptr<float>();
  const float* sin = a.ctx().rope.sin.const_data_ptr<float>();
  if (a.num_inputs() == 0) {
    for (size_t i = 0; i < 2; ++i) {
      kernels::rope_backward(a.out_f32(i),
                             cos,
                             sin,
                             a.out(i).size(0),
                             g.seq_len,
                             a.out(i).size(1) / g.head_dim,
                             g.head_dim);
    }
    return;
  }
  kernels::rope_backward_pack(a.in_f32(0),
                              a.in_f32(1),
                              a.in_f32(2),
                              a.out_f32(0),
                              cos,
                              sin,
                              a.out(0).size(0),
                              g.seq_len,
                              g.num_heads,
                              g.num_kv_heads,
                              g.head_dim);
}

void swiglu(const Args& a) {
  kernels::swiglu_forward(a.in_f32(0), a.out_f32(0), a.out(0).size(0), a.out(0).size(1));
}

void swiglu_backward(const Args& a) {
  kernels::swiglu_backward(a.out_f32(0), a.in_f32(0), a.in(0).size(0), a.in(0).size(1));
}

void gelu(const Args& a) { kernels::gelu_forward(a.in_f32(0), a.out_f32(0), a.in(0).numel()); }

void gelu_backward(const Args& a) {
  kernels::gelu_backward(a.out_f32(0), a.in_f32(0), a.in(0).numel());
}

void relu(const Args& a) { kernels::relu_forward(a.in_f32(0), a.out_f32(0), a.in(0).numel()); }

void relu_backward(const Args& a) {
  kernels::relu_backward(a.out_f32(0), a.in_f32(0), a.in(0).numel());
}

void add(const Args& a) { kernels::add_inplace(a.out_f32(0), a.in_f32(0), a.in(0).numel()); }

void logit_max(const Args& a) {
  kernels::logits_row_max(a.in_f32(0), a.out_f32(0), a.in(0).size(0), a.in(0).size(1));
}

// inputs row_max, labels; outputs logits, stats [2, T]: sums of exponentials, then target logits.
void logit_sum(const Args& a) {
  const int64_t tokens = a.out(0).size(0);
  float* stats = a.out_f32(1);
  kernels::logits_exp_sum(a.out_f32(0),
                          a.in_f32(0),
                          a.in_i64(1),
                          a.graph().vocab_begin,
                          stats,
                          stats + tokens,
                          tokens,
                          a.out(0).size(1));
}

void cross_entropy(const Args& a) {
  const int64_t tokens = a.out(0).size(0);
  const float* stats = a.in_f32(0);
  LossState& loss = a.ctx().loss;
  loss.sum += kernels::cross_entropy_finish(a.out_f32(0),
                                            stats,
                                            stats + tokens,
                                            a.in_i64(1),
                                            a.graph().vocab_begin,
                                            kIgnoreLabel,
                                            loss.grad_scale,
                                            tokens,
                                            a.out(0).size(1));
}

/// True when fault injection leaves this sum out.
bool skipped(OperatorContext& ctx) {
  if (ctx.num_skipped_sums == 0) return false;
  --ctx.num_skipped_sums;
  return true;
}

void all_reduce(const Args& a) {
  if (!skipped(a.ctx())) a.ctx().tp.all_reduce(a.out(0));
}

void all_reduce_max(const Args& a) { a.ctx().tp.all_reduce(a.out(0), ReduceOp::kMax); }

void all_gather(const Args& a) { a.ctx().tp.all_gather(a.out(0), a.in(0)); }

void reduce_scatter(const Args& a) {
  Communicator& tp = a.ctx().tp;
  if (skipped(a.ctx())) {
    const int64_t rows = a.out(0).size(0);
    a.out(0).copy_(a.in(0).narrow(0, tp.rank() * rows, rows));
  } else {
    tp.reduce_scatter(a.out(0), a.in(0));
  }
}

}  // namespace

RopeTables make_rope_tables(const ModelSpec& model, int64_t seq_len) {
  RopeTables t{at::empty({seq_len, model.head_dim / 2}), at::empty({seq_len, model.head_dim / 2})};
  if (model.positions == PositionKind::kLearned) {  // no rotation: dq, dk, dv are only packed
    t.cos.fill_(1);
    t.sin.zero_();
    return t;
  }
  kernels::rope_tables(t.cos.mutable_data_ptr<float>(),
                       t.sin.mutable_data_ptr<float>(),
                       seq_len,
                       model.head_dim,
                       model.rope_theta);
  return t;
}

bool allocates_own_outputs(OpKind kind) {
  return kind == OpKind::kAttention || kind == OpKind::kAttentionBackward;
}

void run_operator(const Operator& op, OperatorContext& ctx) {
  const Args a(op, ctx);
  switch (op.kind) {
    case OpKind::kLoadIds:
      return load_ids(a);
    case OpKind::kLoadLabels:
      return load_labels(a);
    case OpKind::kEmbedding:
      return embedding(a);
    case OpKind::kEmbeddingBackward:
      return embedding_backward(a);
    case OpKind::kZero:
      return zero(a);
    case OpKind::kRmsNorm:
      return rms_norm(a);
    case OpKind::kRmsNormBackward:
      return rms_norm_backward(a, op.inputs.size() > 3);
    case OpKind::kLayerNorm:
      return layer_norm(a);
    case OpKind::kLayerNormBackward:
      return layer_norm_backward(a, op.inputs.size() > 3);
    case OpKind::kHeadNorm:
      return head_norm(a);
    case OpKind::kHeadNormBackward:
      return head_norm_backward(a);
    case OpKind::kPosition:
      return position(a);
    case OpKind::kPositionBackward:
      return position_backward(a);
    case OpKind::kGelu:
      return gelu(a);
    case OpKind::kGeluBackward:
      return gelu_backward(a);
    case OpKind::kRelu:
      return relu(a);
    case OpKind::kReluBackward:
      return relu_backward(a);
    case OpKind::kLinear:
      return linear(a, op.inputs.size() > 1);
    case OpKind::kLinearBackwardInput:
      return linear_backward_input(a);
    case OpKind::kLinearBackwardWeight:
      return linear_backward_weight(a);
    case OpKind::kAddBias:
      return add_bias(a);
    case OpKind::kBiasBackward:
      return bias_backward(a);
    case OpKind::kRope:
      return rope(a);
    case OpKind::kRopeBackward:
      return rope_backward(a);
    case OpKind::kAttention:
      return run_attention(op, ctx);
    case OpKind::kAttentionBackward:
      return run_attention_backward(op, ctx);
    case OpKind::kSwiGlu:
      return swiglu(a);
    case OpKind::kSwiGluBackward:
      return swiglu_backward(a);
    case OpKind::kAdd:
      return add(a);
    case OpKind::kLogitMax:
      return logit_max(a);
    case OpKind::kLogitSum:
      return logit_sum(a);
    case OpKind::kCrossEntropy:
      return cross_entropy(a);
    case OpKind::kAllReduce:
      return all_reduce(a);
    case OpKind::kAllReduceMax:
      return all_reduce_max(a);
    case OpKind::kAllGather:
      return all_gather(a);
    case OpKind::kReduceScatter:
      return reduce_scatter(a);
    default:
      // executor_refuses() lets no plan through that holds one of the others.
      MW_CHECK(false, std::string(to_string(op.kind)));
  }
}

}  // namespace meshwright
