// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/block_builder.h"

#include <algorithm>

#include "sim/graph/lifetimes.h"
#include "sim/mesh/shard.h"

namespace meshwright {
namespace {

double mean_span(const ModelSpec& m, const Workload& w) {
  if (!m.sliding_window) return w.attention_span();
  const double windowed = 1.0 / static_cast<double>(m.window_every);
  return windowed * w.attention_span(m.sliding_window) + (1 - windowed) * w.attention_span();
}

}  // namespace

ShardShapes shard_shapes(const Plan& plan, int tp_index) {
  const ModelSpec& m = plan.model();
  const Layout& l = plan.layout();
  const int64_t tokens = plan.tokens_per_micro_batch() / l.cp;
  const int64_t seq = plan.workload().seq_len;
  return {.T = tokens,
          .TL = l.sp ? tokens / l.tp : tokens,
          .D = m.d_model,
          .N = m.num_heads / l.tp,
          .K = std::max<int64_t>(1, m.num_kv_heads / l.tp),
          .H = m.head_dim,
          .F = shard_range(m.d_ff, l.tp, tp_index).size(),
          .V = shard_range(m.vocab_size, l.tp, tp_index).size(),
          .S = seq,
          .tp = l.tp > 1,
          .sp = l.sp,
          .cpu = plan.cluster().is_local(),
          .flash = l.flash_attention,
          .tp_degree = l.tp,
          .tp_index = tp_index,
          .ep = l.ep,
          .cp = l.cp,
          .ulysses = l.cp_kind == CpKind::kUlysses,
          .expert_tp = l.expert_tp || l.tp == 1,
          .lora_rank = plan.workload().lora ? plan.workload().lora->rank : 0,
          .nf4_base = plan.workload().lora && plan.workload().lora->base == BaseFormat::kNf4,
          .attention_span = mean_span(m, plan.workload()),
          .act = activation_dtype(l.precision)};
}

BufferId BlockBuilder::buffer(std::string name, std::vector<int64_t> shape, DType dtype) {
  block_.buffers.push_back({std::move(name), std::move(shape), dtype});
  return static_cast<BufferId>(block_.buffers.size()) - 1;
}
BufferId BlockBuilder::act(std::string name, int64_t rows, int64_t cols) {
  return buffer(std::move(name), {rows, cols}, s_.act);
}
BufferId BlockBuilder::vec(std::string name, int64_t n) {
  return buffer(std::move(name), {n}, DType::kFloat32);
}

int64_t BlockBuilder::rows(BufferId b) const {
  return block_.buffers[static_cast<size_t>(b)].shape[0];
}
int64_t BlockBuilder::cols(BufferId b) const {
  return block_.buffers[static_cast<size_t>(b)].shape[1];
}
Bytes BlockBuilder::size(BufferId b) const {
  return Bytes{static_cast<double>(block_.buffers[static_cast<size_t>(b)].bytes())};
}

Operator& BlockBuilder::simple(OpKind kind,
                               std::vector<BufferId> in,
                               std::vector<BufferId> out,
                               ParamSlot p) {
  Operator op{.kind = kind, .inputs = std::move(in), .outputs = std::move(out), .param = p};
  for (const BufferId b : op.inputs) op.bytes += size(b);
  for (const BufferId b : op.outputs) op.bytes += size(b);
  ops_->push_back(std::move(op));
  return ops_->back();
}

bool BlockBuilder::adapted(ParamSlot p) const {
  if (s_.lora_rank == 0 || !is_decoder(block_.kind)) return false;
  switch (p) {
    case ParamSlot::kQkv:
    case ParamSlot::kLatentDown:
    case ParamSlot::kQueryUp:
    case ParamSlot::kKvUp:
    case ParamSlot::kAttnOut:
    case ParamSlot::kGateUp:
    case ParamSlot::kDown:
    case ParamSlot::kSharedGateUp:
    case ParamSlot::kSharedDown:
      return true;
    default:
      return false;
  }
}

int BlockBuilder::parts(ParamSlot p) const {
  switch (p) {
    case ParamSlot::kQkv:
      return model_.mla ? 1 : 3;
    case ParamSlot::kLatentDown:
      return model_.mla->q_lora_rank > 0 ? 2 : 1;
    case ParamSlot::kGateUp:
    case ParamSlot::kSharedGateUp:
      return model_.gated_ffn() ? 2 : 1;
    default:
      return 1;
  }
}

void BlockBuilder::linear(BufferId x, BufferId y, ParamSlot p, BufferId residual) {
  std::vector<BufferId> in{x};
  if (residual >= 0) in.push_back(residual);
  matmul(OpKind::kLinear, std::move(in), {y}, p, rows(y), cols(y), cols(x));
  if (!adapted(p)) return;
  const int64_t r = s_.lora_rank;
  const BufferId h = adapter_[p] = act("adapter", rows(x), r * parts(p));
  matmul(OpKind::kLinear, {x}, {h}, p, rows(x), r * parts(p), cols(x), AdapterHalf::kDown);
  matmul(OpKind::kLinear, {h, y}, {y}, p, rows(y), cols(y), r, AdapterHalf::kUp);
}
void BlockBuilder::linear_backward_input(BufferId dy, BufferId dx, ParamSlot p) {
  matmul(OpKind::kLinearBackwardInput, {dy}, {dx}, p, rows(dx), cols(dx), cols(dy));
  if (!adapted(p)) return;
  const int64_t r = s_.lora_rank;
  const BufferId dh = adapter_grad_[p] = act("dadapter", rows(dy), r * parts(p));
  matmul(OpKind::kLinearBackwardInput, {dy}, {dh}, p, rows(dy), r, cols(dy), AdapterHalf::kUp);
  matmul(OpKind::kLinearBackwardInput,
         {dh, dx},
         {dx},
         p,
         rows(dx),
         cols(dx),
         r * parts(p),
         AdapterHalf::kDown);
}
void BlockBuilder::linear_backward_weight(BufferId dy, BufferId x, ParamSlot p) {
  if (s_.lora_rank == 0)
    return matmul(OpKind::kLinearBackwardWeight, {dy, x}, {}, p, cols(dy), cols(x), rows(x));
  if (!adapted(p)) return;
  const int64_t r = s_.lora_rank;
  matmul(OpKind::kLinearBackwardWeight,
         {dy, adapter_.at(p)},
         {},
         p,
         cols(dy),
         r,
         rows(x),
         AdapterHalf::kUp);
  matmul(OpKind::kLinearBackwardWeight,
         {adapter_grad_.at(p), x},
         {},
         p,
         r * parts(p),
         cols(x),
         rows(x),
         AdapterHalf::kDown);
}

void BlockBuilder::group_last(int64_t groups) {
  // Frozen experts have no weight gradient to group.
  if (s_.lora_rank > 0 && ops_->back().groups != 1) return;
  Operator& op = ops_->back();
  op.groups = groups;
  const auto extra = static_cast<double>(groups - 1);
  if (op.kind == OpKind::kLinearBackwardWeight) {
    op.k = (op.k + groups - 1) / groups;
    op.bytes += Bytes{8.0 * static_cast<double>(op.m * op.n) * extra};
  } else {
    op.m = (op.m + groups - 1) / groups;
    op.bytes += Bytes{static_cast<double>(size_of(s_.act) * op.n * op.k) * extra};
  }
}

BufferId BlockBuilder::sum_partial(BufferId y, BufferId shard) {
  if (!s_.tp) return y;
  if (!s_.sp) {
    collective(OpKind::kAllReduce, {}, {y}, size(y));
    return y;
  }
  collective(OpKind::kReduceScatter, {y}, {shard}, size(y));
  return shard;
}
BufferId BlockBuilder::gathered(BufferId x, BufferId whole) {
  if (!s_.sp) return x;
  collective(OpKind::kAllGather, {x}, {whole}, size(whole));
  return whole;
}
void BlockBuilder::collective(OpKind kind,
                              std::vector<BufferId> in,
                              std::vector<BufferId> out,
                              Bytes payload,
                              OpGroup group) {
  Operator op{.kind = kind, .inputs = std::move(in), .outputs = std::move(out), .group = group};
  op.bytes = payload;
  ops_->push_back(std::move(op));
}

void BlockBuilder::attention(std::vector<BufferId> qkv, BufferId out, BufferId lse) {
  Operator& op = simple(OpKind::kAttention, std::move(qkv), {out, lse});
  op.flop = attention_flop(4.0);
  op.m = s_.S;
  op.n = s_.H;
  op.workspace = attention_workspace(false);
}
void BlockBuilder::attention_backward(std::vector<BufferId> in, std::vector<BufferId> dqkv) {
  Operator& op = simple(OpKind::kAttentionBackward, std::move(in), std::move(dqkv));
  op.m = s_.S;
  op.n = s_.H;
  op.flop = attention_flop(10.0);  // recomputes the scores: 2.5 x forward
  op.workspace = attention_workspace(true);
}

void BlockBuilder::score_matmul(OpKind kind,
                                std::vector<BufferId> in,
                                std::vector<BufferId> out,
                                int matmuls) {
  Operator& op = simple(kind, std::move(in), std::move(out));
  op.m = s_.S;
  op.n = s_.H;
  // The full square: a materialised score matrix computes the masked half too.
  op.flop = attention_flop(4.0 * matmuls);
}

void BlockBuilder::matmul(OpKind kind,
                          std::vector<BufferId> in,
                          std::vector<BufferId> out,
                          ParamSlot p,
                          int64_t m,
                          int64_t n,
                          int64_t k,
                          AdapterHalf adapter) {
  Operator& op = simple(kind, std::move(in), std::move(out), p);
  op.adapter = adapter;
  op.m = m;
  op.n = n;
  op.k = k;
  op.flop = Flop{2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)};
  // The weight, or its FP32 gradient read and written.
  const double other =
      kind == OpKind::kLinearBackwardWeight
          ? 8.0 * static_cast<double>(m) * static_cast<double>(n)
          : static_cast<double>(size_of(s_.act)) * static_cast<double>(n) * static_cast<double>(k);
  op.bytes += Bytes{other};
  // A quantised weight is widened for its matmul.
  if (s_.nf4_base && adapter == AdapterHalf::kNone && kind != OpKind::kLinearBackwardWeight)
    op.workspace = Bytes{static_cast<double>(size_of(s_.act) * n * k)};
}

Flop BlockBuilder::attention_flop(double per_pair) const {
  // Scores over the query-key width, weighted values over the value width; the causal half of the
  // pairs inside a document.
  const int64_t values = model_.mla ? model_.mla->v_head_dim : s_.H;
  const double width = static_cast<double>(s_.N * (s_.H + values)) / 2.0;
  return Flop{per_pair / 2.0 * static_cast<double>(s_.T) * s_.attention_span * width};
}

/// Scratch of the kernels: ATen's CPU flash kernel keeps per-thread tiles (one thread here); the
/// CUDA backward keeps an FP32 accumulator of dq.
Bytes BlockBuilder::attention_workspace(bool backward) const {
  if (!s_.cpu) return Bytes{backward ? 4.0 * static_cast<double>(s_.T * s_.N * s_.H) : 0.0};
  const int64_t q_tile = std::min<int64_t>(s_.S, s_.S >= 768 ? 256 : s_.S >= 192 ? 64 : 32);
  const int64_t k_tile = std::min<int64_t>(s_.S, 512);
  const int64_t floats = backward ? 2 * q_tile * k_tile + q_tile : q_tile * (k_tile + 2 + s_.H);
  return Bytes{4.0 * static_cast<double>(floats)};
}

BlockGraph BlockBuilder::finish(Recompute recompute) {
  std::vector<bool> repeated(forward_.size(), recompute == Recompute::kFull);
  if (recompute == Recompute::kSelective) {
    std::fill(repeated.begin() + static_cast<std::ptrdiff_t>(selective_begin_),
              repeated.begin() + static_cast<std::ptrdiff_t>(selective_end_),
              true);
  }
  assign_lifetimes(block_, forward_, backward_, repeated);
  return std::move(block_);
}

}  // namespace meshwright
