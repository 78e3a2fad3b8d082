// What the operator functions share: an operator's tensors by position, and the functions' names.
//
// Private to exec/model.
#pragma once

#include <cstdint>

#include "exec/model/operators.h"

namespace meshwright {

/// An operator's tensors by position, as kernels and matmuls want them.
class OperatorArgs {
 public:
  OperatorArgs(const Operator& op, OperatorContext& ctx) : op_(op), ctx_(ctx) {}

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

namespace operators {

// token_operators.cpp: ids and labels, embedding, positions, dropout.
void load_ids(const OperatorArgs& a);
void load_labels(const OperatorArgs& a);
void embedding(const OperatorArgs& a);
void embedding_backward(const OperatorArgs& a);
void position(const OperatorArgs& a);
void position_backward(const OperatorArgs& a);
void dropout(const OperatorArgs& a);
void dropout_backward(const OperatorArgs& a);

// norm_operators.cpp
void rms_norm(const OperatorArgs& a);
void rms_norm_backward(const OperatorArgs& a, bool residual);
void layer_norm(const OperatorArgs& a);
void layer_norm_backward(const OperatorArgs& a, bool residual);
void head_norm(const OperatorArgs& a);
void head_norm_backward(const OperatorArgs& a);

// layer_operators.cpp: matmuls, biases, rotations, activations.
void zero(const OperatorArgs& a);
void linear(const OperatorArgs& a, bool residual);
void linear_backward_input(const OperatorArgs& a);
void linear_backward_weight(const OperatorArgs& a);
void add_bias(const OperatorArgs& a);
void bias_backward(const OperatorArgs& a);
void rope(const OperatorArgs& a);
void rope_backward(const OperatorArgs& a);
void swiglu(const OperatorArgs& a);
void swiglu_backward(const OperatorArgs& a);
void gelu(const OperatorArgs& a);
void gelu_backward(const OperatorArgs& a);
void relu(const OperatorArgs& a);
void relu_backward(const OperatorArgs& a);
void add(const OperatorArgs& a);

// loss_operators.cpp
void logit_max(const OperatorArgs& a);
void logit_sum(const OperatorArgs& a);
void cross_entropy(const OperatorArgs& a);

// collective_operators.cpp
void all_reduce(const OperatorArgs& a);
void all_reduce_max(const OperatorArgs& a);
void all_gather(const OperatorArgs& a);
void reduce_scatter(const OperatorArgs& a);

}  // namespace operators
}  // namespace meshwright
