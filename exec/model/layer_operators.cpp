// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "exec/model/operator_args.h"
#include "kernels/activation/activation.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/rope/rope.h"
#include "kernels/swiglu/swiglu.h"

namespace meshwright::operators {

void zero(const OperatorArgs& a) { a.out(0).zero_(); }

void linear(const OperatorArgs& a, bool residual) {
  if (residual) {
    at::addmm_out(a.out(0), a.in(1), a.in(0), a.param().weight_t);
  } else {
    at::mm_out(a.out(0), a.in(0), a.param().weight_t);
  }
}

void linear_backward_input(const OperatorArgs& a) {
  at::mm_out(a.out(0), a.in(0), a.param().weight);
}

void linear_backward_weight(const OperatorArgs& a) { a.grad().addmm_(a.in(0).t(), a.in(1)); }

void add_bias(const OperatorArgs& a) {
  kernels::add_bias(a.out_f32(0), a.weight(), a.out(0).size(0), a.out(0).size(1));
}

void bias_backward(const OperatorArgs& a) {
  kernels::bias_backward(a.in_f32(0), a.grad_f32(), a.in(0).size(0), a.in(0).size(1));
}

// In place on the query and key heads of qkv, or on what a norm made of those alone.
void rope(const OperatorArgs& a) {
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
void rope_backward(const OperatorArgs& a) {
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

void swiglu(const OperatorArgs& a) {
  kernels::swiglu_forward(a.in_f32(0), a.out_f32(0), a.out(0).size(0), a.out(0).size(1));
}

void swiglu_backward(const OperatorArgs& a) {
  kernels::swiglu_backward(a.out_f32(0), a.in_f32(0), a.in(0).size(0), a.in(0).size(1));
}

void gelu(const OperatorArgs& a) {
  kernels::gelu_forward(a.in_f32(0), a.out_f32(0), a.in(0).numel());
}

void gelu_backward(const OperatorArgs& a) {
  kernels::gelu_backward(a.out_f32(0), a.in_f32(0), a.in(0).numel());
}

void relu(const OperatorArgs& a) {
  kernels::relu_forward(a.in_f32(0), a.out_f32(0), a.in(0).numel());
}

void relu_backward(const OperatorArgs& a) {
  kernels::relu_backward(a.out_f32(0), a.in_f32(0), a.in(0).numel());
}

void add(const OperatorArgs& a) {
  kernels::add_inplace(a.out_f32(0), a.in_f32(0), a.in(0).numel());
}

}  // namespace meshwright::operators
