// SPDX-License-Identifier: Apache-2.0
#include "exec/model/operator_args.h"
#include "kernels/headnorm/headnorm.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/rmsnorm/rmsnorm.h"

namespace meshwright::operators {
namespace {

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

kernels::HeadCounts head_counts(const ModelGraph& g) {
  return {.queries = g.num_heads, .keys = g.num_kv_heads, .dim = g.head_dim};
}

}  // namespace

void rms_norm(const OperatorArgs& a) {
  kernels::rmsnorm_forward(a.in_f32(0),
                           a.weight(),
                           a.out_f32(0),
                           a.out_f32(1),
                           a.in(0).size(0),
                           a.in(0).size(1),
                           a.ctx().norm_eps);
}

void rms_norm_backward(const OperatorArgs& a, bool residual) {
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

// stats [2, T]: means, then reciprocal deviations.
void layer_norm(const OperatorArgs& a) {
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

void layer_norm_backward(const OperatorArgs& a, bool residual) {
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

void head_norm(const OperatorArgs& a) {
  kernels::headnorm_forward(a.in_f32(0),
                            a.weight(ParamSlot::kQueryNorm),
                            a.weight(ParamSlot::kKeyNorm),
                            a.out_f32(0),
                            a.out_f32(1),
                            a.in(0).size(0),
                            head_counts(a.graph()),
                            a.ctx().norm_eps);
}

void head_norm_backward(const OperatorArgs& a) {
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

}  // namespace meshwright::operators
