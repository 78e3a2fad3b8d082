// SPDX-License-Identifier: Apache-2.0
// ATen's CPU flash attention on strided views of the packed qkv: no copy in, and the tensors it
// returns are the declared buffers. grad_out must be a transposed view of [B, S, N, H]-contiguous
// memory, or ATen copies it.
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include <tuple>

#include "exec/model/operators.h"

namespace meshwright {
namespace {

// Shape letters: B sequences, S tokens of one, T = B*S, N/K query and key/value heads, H head
// width.
struct Heads {
  at::Tensor q, k, v;  ///< [B, N or K, S, H].
};

/// Heads [first, first + count) of rows that hold several.
at::Tensor heads_of(const at::Tensor& rows, const ModelGraph& g, int64_t first, int64_t count) {
  return rows.view({rows.size(0) / g.seq_len, g.seq_len, rows.size(1) / g.head_dim, g.head_dim})
      .transpose(1, 2)
      .narrow(1, first, count);
}

/// Queries and keys are the first heads of `qk`, values the last ones of `qkv`.
Heads split_heads(const at::Tensor& qk, const at::Tensor& qkv, const ModelGraph& g) {
  return {heads_of(qk, g, 0, g.num_heads),
          heads_of(qk, g, g.num_heads, g.num_kv_heads),
          heads_of(qkv, g, g.num_heads + g.num_kv_heads, g.num_kv_heads)};
}

/// [T, n*H] as [B, n, S, H].
at::Tensor by_head(const at::Tensor& x, const ModelGraph& g) {
  return x.view({x.size(0) / g.seq_len, g.seq_len, x.size(1) / g.head_dim, g.head_dim})
      .transpose(1, 2);
}

/// [B, n, S, H] as [T, n*H]; the memory already has that order.
at::Tensor by_token(const at::Tensor& x) {
  return x.transpose(1, 2).view({x.size(0) * x.size(2), x.size(1) * x.size(3)});
}

}  // namespace

void run_attention(const Operator& op, OperatorContext& ctx) {
  std::vector<at::Tensor>& b = *ctx.buffers;
  const Heads h = split_heads(b[static_cast<size_t>(op.inputs.front())],
                              b[static_cast<size_t>(op.inputs.back())],
                              ctx.graph);
  auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(h.q, h.k, h.v, 0.0, true);
  b[static_cast<size_t>(op.outputs[0])] = by_token(out);
  b[static_cast<size_t>(op.outputs[1])] =
      lse.transpose(1, 2).view({-1});  // [B, N, S] over [B, S, N] memory
}

void run_attention_backward(const Operator& op, OperatorContext& ctx) {
  std::vector<at::Tensor>& b = *ctx.buffers;
  const auto in = [&](size_t i) -> const at::Tensor& {
    return b[static_cast<size_t>(op.inputs[i])];
  };
  const size_t last = op.inputs.size() - 1;  // dout, [qk,] qkv, out, lse
  const Heads h = split_heads(in(1), in(last - 2), ctx.graph);
  const at::Tensor lse =
      in(last).view({h.q.size(0), ctx.graph.seq_len, ctx.graph.num_heads}).transpose(1, 2);
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      by_head(in(0), ctx.graph), h.q, h.k, h.v, by_head(in(last - 1), ctx.graph), lse, 0.0, true);
  b[static_cast<size_t>(op.outputs[0])] = by_token(dq);
  b[static_cast<size_t>(op.outputs[1])] = by_token(dk);
  b[static_cast<size_t>(op.outputs[2])] = by_token(dv);
}

}  // namespace meshwright
