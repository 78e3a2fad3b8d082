// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/model_graph.h"

#include <algorithm>

#include "sim/graph/lifetimes.h"
#include "sim/mesh/shard.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {
namespace {

// Shape letters: T tokens of a micro-batch, TL tokens of a sequence-parallel shard, D model width,
// N/K query and key/value heads of this rank, H head width, F feed-forward width of this rank, V
// vocabulary rows of this rank.
struct Shapes {
  int64_t T, TL, D, N, K, H, F, V, S;
  bool tp, sp, bias, cpu;
  DType act;
};

/// Collects the operators of one block; each method is one operator with its figures.
class BlockBuilder {
 public:
  BlockBuilder(BlockKind kind, const Shapes& s) : s_(s) { block_.kind = kind; }

  BufferId buffer(const char* name, std::vector<int64_t> shape, DType dtype) {
    block_.buffers.push_back({name, std::move(shape), dtype});
    return static_cast<BufferId>(block_.buffers.size()) - 1;
  }
  BufferId act(const char* name, int64_t rows, int64_t cols) {
    return buffer(name, {rows, cols}, s_.act);
  }
  BufferId vec(const char* name, int64_t n) { return buffer(name, {n}, DType::kFloat32); }

  BlockGraph& block() { return block_; }
  BlockGraph finish(bool recompute) {
    assign_lifetimes(block_, forward_, backward_, recompute);
    return std::move(block_);
  }
  void to_backward() { ops_ = &backward_; }

  /// An operator that moves `bytes_of` its buffers once each.
  void simple(OpKind kind,
              std::vector<BufferId> in,
              std::vector<BufferId> out,
              ParamSlot p = ParamSlot::kNone) {
    Operator op{.kind = kind, .inputs = std::move(in), .outputs = std::move(out), .param = p};
    for (const BufferId b : op.inputs) op.bytes += size(b);
    for (const BufferId b : op.outputs) op.bytes += size(b);
    ops_->push_back(std::move(op));
  }
  Operator& last() { return ops_->back(); }

  void linear(BufferId x, BufferId y, ParamSlot p, BufferId residual = -1) {
    std::vector<BufferId> in{x};
    if (residual >= 0) in.push_back(residual);
    matmul(OpKind::kLinear, std::move(in), {y}, p, rows(y), cols(y), cols(x));
  }
  void linear_backward_input(BufferId dy, BufferId dx, ParamSlot p) {
    matmul(OpKind::kLinearBackwardInput, {dy}, {dx}, p, rows(dx), cols(dx), cols(dy));
  }
  void linear_backward_weight(BufferId dy, BufferId x, ParamSlot p) {
    matmul(OpKind::kLinearBackwardWeight, {dy, x}, {}, p, cols(dy), cols(x), rows(x));
  }

  /// y [T, D] partial over tp -> whole (all-reduce) or own token shard (reduce-scatter into
  /// `shard`).
  BufferId sum_partial(BufferId y, BufferId shard) {
    if (!s_.tp) return y;
    if (!s_.sp) {
      collective(OpKind::kAllReduce, {}, {y}, size(y));
      return y;
    }
    collective(OpKind::kReduceScatter, {y}, {shard}, size(y));
    return shard;
  }
  /// x, or under sequence parallelism the whole of x gathered into `whole`.
  BufferId gathered(BufferId x, BufferId whole) {
    if (!s_.sp) return x;
    collective(OpKind::kAllGather, {x}, {whole}, size(whole));
    return whole;
  }
  void collective(OpKind kind, std::vector<BufferId> in, std::vector<BufferId> out, Bytes payload) {
    Operator op{.kind = kind, .inputs = std::move(in), .outputs = std::move(out)};
    op.bytes = payload;
    ops_->push_back(std::move(op));
  }

  void attention(BufferId qkv, BufferId out, BufferId lse) {
    simple(OpKind::kAttention, {qkv}, {out, lse});
    last().flop = attention_flop(4.0);
    last().m = s_.S;
    last().n = s_.H;
    last().workspace = attention_workspace(false);
  }
  void attention_backward(
      BufferId dout, BufferId qkv, BufferId out, BufferId lse, std::vector<BufferId> dqkv) {
    simple(OpKind::kAttentionBackward, {dout, qkv, out, lse}, std::move(dqkv));
    last().m = s_.S;
    last().n = s_.H;
    last().flop = attention_flop(10.0);  // recomputes the scores: 2.5 x forward
    last().workspace = attention_workspace(true);
  }

 private:
  [[nodiscard]] int64_t rows(BufferId b) const {
    return block_.buffers[static_cast<size_t>(b)].shape[0];
  }
  [[nodiscard]] int64_t cols(BufferId b) const {
    return block_.buffers[static_cast<size_t>(b)].shape[1];
  }
  [[nodiscard]] Bytes size(BufferId b) const {
    return Bytes{static_cast<double>(block_.buffers[static_cast<size_t>(b)].bytes())};
  }

  void matmul(OpKind kind,
              std::vector<BufferId> in,
              std::vector<BufferId> out,
              ParamSlot p,
              int64_t m,
              int64_t n,
              int64_t k) {
    simple(kind, std::move(in), std::move(out), p);
    Operator& op = last();
    op.m = m;
    op.n = n;
    op.k = k;
    op.flop = Flop{2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)};
    // The weight, or its FP32 gradient read and written.
    const double other = kind == OpKind::kLinearBackwardWeight
                             ? 8.0 * static_cast<double>(m) * static_cast<double>(n)
                             : static_cast<double>(size_of(s_.act)) * static_cast<double>(n) *
                                   static_cast<double>(k);
    op.bytes += Bytes{other};
  }
  [[nodiscard]] Flop attention_flop(double per_pair) const {
    const auto t = static_cast<double>(s_.T);
    return Flop{per_pair / 2.0 * t * static_cast<double>(s_.S) *
                static_cast<double>(s_.N * s_.H)};  // causal half
  }
  /// Scratch of the kernels: ATen's CPU flash kernel keeps per-thread tiles (one thread here); the
  /// CUDA backward keeps an FP32 accumulator of dq.
  [[nodiscard]] Bytes attention_workspace(bool backward) const {
    if (!s_.cpu) return Bytes{backward ? 4.0 * static_cast<double>(s_.T * s_.N * s_.H) : 0.0};
    const int64_t q_tile = std::min<int64_t>(s_.S, s_.S >= 768 ? 256 : s_.S >= 192 ? 64 : 32);
    const int64_t k_tile = std::min<int64_t>(s_.S, 512);
    const int64_t floats = backward ? 2 * q_tile * k_tile + q_tile : q_tile * (k_tile + 2 + s_.H);
    return Bytes{4.0 * static_cast<double>(floats)};
  }

  Shapes s_;
  BlockGraph block_;
  std::vector<Operator> forward_;
  std::vector<Operator> backward_;
  std::vector<Operator>* ops_ = &forward_;
};

BlockGraph embedding_block(const Shapes& s) {
  BlockBuilder b(BlockKind::kEmbedding, s);
  const BufferId ids = b.buffer("ids", {s.T}, DType::kInt64);
  const BufferId rows = b.act("rows", s.T, s.D);
  const BufferId shard = s.sp ? b.act("out", s.TL, s.D) : -1;
  const BufferId grad = b.act("grad", s.TL, s.D);
  b.simple(OpKind::kLoadIds, {}, {ids});
  b.simple(OpKind::kEmbedding, {ids}, {rows}, ParamSlot::kTable);
  b.block().output = b.sum_partial(rows, shard);
  b.block().grad = grad;
  b.to_backward();
  const BufferId whole = b.gathered(grad, s.sp ? b.act("grad_whole", s.T, s.D) : -1);
  b.simple(OpKind::kEmbeddingBackward, {whole, ids}, {}, ParamSlot::kTable);
  return b.finish(false);
}

BlockGraph decoder_block(const Shapes& s, bool recompute) {
  BlockBuilder b(BlockKind::kDecoder, s);
  const int64_t qkv_width = (s.N + 2 * s.K) * s.H;
  // A buffer that only sequence parallelism needs: the whole of a token-sharded tensor, or the
  // shard of a whole one.
  const auto whole = [&](const char* name) { return s.sp ? b.act(name, s.T, s.D) : -1; };
  const auto shard = [&](const char* name) { return s.sp ? b.act(name, s.TL, s.D) : -1; };

  const BufferId x = b.act("x", s.TL, s.D);
  const BufferId norm1 = b.act("attn_norm", s.TL, s.D);
  const BufferId rstd1 = b.vec("attn_rstd", s.TL);
  const BufferId norm1_whole = whole("attn_norm_whole");
  const BufferId qkv = b.act("qkv", s.T, qkv_width);
  const BufferId att = b.act("attention", s.T, s.N * s.H);
  const BufferId lse = b.vec("lse", s.T * s.N);
  const BufferId att_out = b.act("attn_out", s.T, s.D);
  const BufferId att_out_shard = shard("attn_out_shard");
  const BufferId norm2_in_rstd = b.vec("ffn_rstd", s.TL);
  const BufferId norm2 = b.act("ffn_norm", s.TL, s.D);
  const BufferId norm2_whole = whole("ffn_norm_whole");
  const BufferId gate_up = b.act("gate_up", s.T, 2 * s.F);
  const BufferId act = b.act("act", s.T, s.F);
  const BufferId ffn_out = b.act("ffn_out", s.T, s.D);
  const BufferId ffn_out_shard = shard("ffn_out_shard");
  const BufferId grad = b.act("grad", s.TL, s.D);

  b.block().input = x;
  b.block().grad = grad;
  b.simple(OpKind::kRmsNorm, {x}, {norm1, rstd1}, ParamSlot::kAttnNorm);
  b.linear(b.gathered(norm1, norm1_whole), qkv, ParamSlot::kQkv);
  if (s.bias) b.simple(OpKind::kAddBias, {}, {qkv}, ParamSlot::kQkvBias);
  b.simple(OpKind::kRope, {}, {qkv});
  b.attention(qkv, att, lse);
  b.linear(att, att_out, ParamSlot::kAttnOut, s.tp ? -1 : x);
  const BufferId mid = b.sum_partial(att_out, att_out_shard);
  if (s.tp) b.simple(OpKind::kAdd, {x}, {mid});
  b.simple(OpKind::kRmsNorm, {mid}, {norm2, norm2_in_rstd}, ParamSlot::kFfnNorm);
  b.linear(b.gathered(norm2, norm2_whole), gate_up, ParamSlot::kGateUp);
  b.simple(OpKind::kSwiGlu, {gate_up}, {act});
  b.linear(act, ffn_out, ParamSlot::kDown, s.tp ? -1 : mid);
  const BufferId y = b.sum_partial(ffn_out, ffn_out_shard);
  if (s.tp) b.simple(OpKind::kAdd, {mid}, {y});
  b.block().output = y;

  b.to_backward();
  const BufferId dact = b.act("dact", s.T, s.F);
  const BufferId dnorm2 = b.act("dffn_norm", s.T, s.D);
  const BufferId datt = b.act("dattention", s.T, s.N * s.H);
  const BufferId dq = b.act("dq", s.T, s.N * s.H);
  const BufferId dk = b.act("dk", s.T, s.K * s.H);
  const BufferId dv = b.act("dv", s.T, s.K * s.H);
  const BufferId dnorm1 = b.act("dattn_norm", s.T, s.D);
  const BufferId g2 = b.gathered(grad, whole("grad_whole_ffn"));
  b.linear_backward_input(g2, dact, ParamSlot::kDown);
  b.linear_backward_weight(g2, act, ParamSlot::kDown);
  b.simple(OpKind::kSwiGluBackward, {dact}, {gate_up});
  b.linear_backward_input(gate_up, dnorm2, ParamSlot::kGateUp);
  b.linear_backward_weight(gate_up, b.gathered(norm2, whole("ffn_norm_again")), ParamSlot::kGateUp);
  b.simple(OpKind::kRmsNormBackward,
           {b.sum_partial(dnorm2, shard("dffn_norm_shard")), mid, norm2_in_rstd},
           {grad},
           ParamSlot::kFfnNorm);
  const BufferId g1 = b.gathered(grad, whole("grad_whole_attn"));
  b.linear_backward_input(g1, datt, ParamSlot::kAttnOut);
  b.linear_backward_weight(g1, att, ParamSlot::kAttnOut);
  b.attention_backward(datt, qkv, att, lse, {dq, dk, dv});
  b.simple(OpKind::kRopeBackward, {dq, dk, dv}, {qkv});
  if (s.bias) b.simple(OpKind::kBiasBackward, {qkv}, {}, ParamSlot::kQkvBias);
  b.linear_backward_input(qkv, dnorm1, ParamSlot::kQkv);
  b.linear_backward_weight(qkv, b.gathered(norm1, whole("attn_norm_again")), ParamSlot::kQkv);
  b.simple(OpKind::kRmsNormBackward,
           {b.sum_partial(dnorm1, shard("dattn_norm_shard")), x, rstd1},
           {grad},
           ParamSlot::kAttnNorm);
  return b.finish(recompute);
}

BlockGraph head_block(const Shapes& s) {
  BlockBuilder b(BlockKind::kHead, s);
  const BufferId x = b.act("x", s.TL, s.D);
  const BufferId norm = b.act("norm", s.TL, s.D);
  const BufferId rstd = b.vec("rstd", s.TL);
  const BufferId labels = b.buffer("labels", {s.T}, DType::kInt64);
  const BufferId logits = b.act("logits", s.T, s.V);
  const BufferId row_max = b.vec("row_max", s.T);
  const BufferId stats = b.buffer("stats", {2, s.T}, DType::kFloat32);
  const BufferId grad = b.act("grad", s.TL, s.D);
  b.block().input = x;
  b.block().grad = grad;
  b.simple(OpKind::kRmsNorm, {x}, {norm, rstd}, ParamSlot::kFinalNorm);
  b.linear(b.gathered(norm, s.sp ? b.act("norm_whole", s.T, s.D) : -1), logits, ParamSlot::kLmHead);
  b.simple(OpKind::kLoadLabels, {}, {labels});
  b.simple(OpKind::kLogitMax, {logits}, {row_max});
  if (s.tp)
    b.collective(OpKind::kAllReduceMax, {}, {row_max}, Bytes{4.0 * static_cast<double>(s.T)});
  b.simple(OpKind::kLogitSum, {row_max, labels}, {logits, stats});
  if (s.tp) b.collective(OpKind::kAllReduce, {}, {stats}, Bytes{8.0 * static_cast<double>(s.T)});
  b.simple(OpKind::kCrossEntropy, {stats, labels}, {logits});
  // BF16 logits are widened to FP32 for the loss.
  if (s.act == DType::kBFloat16) b.last().workspace = Bytes{4.0 * static_cast<double>(s.T * s.V)};

  b.to_backward();
  const BufferId dnorm = b.act("dnorm", s.T, s.D);
  b.linear_backward_input(logits, dnorm, ParamSlot::kLmHead);
  b.linear_backward_weight(
      logits, b.gathered(norm, s.sp ? b.act("norm_again", s.T, s.D) : -1), ParamSlot::kLmHead);
  const BufferId dn = b.sum_partial(dnorm, s.sp ? b.act("dnorm_shard", s.TL, s.D) : -1);
  b.simple(OpKind::kZero, {}, {grad});
  b.simple(OpKind::kRmsNormBackward, {dn, x, rstd}, {grad}, ParamSlot::kFinalNorm);
  return b.finish(false);
}

}  // namespace

const BlockGraph& ModelGraph::block(int index, int num_blocks) const {
  return of(block_kind(index, num_blocks));
}

BlockKind block_kind(int index, int num_blocks) {
  if (index == 0) return BlockKind::kEmbedding;
  return index == num_blocks - 1 ? BlockKind::kHead : BlockKind::kDecoder;
}

ModelGraph build_model_graph(const Plan& plan, int tp_index) {
  const ModelSpec& m = plan.model();
  const Layout& l = plan.layout();
  const int64_t tokens = plan.tokens_per_micro_batch();
  const ShardRange vocab = shard_range(m.vocab_size, l.tp, tp_index);
  const Shapes s{.T = tokens,
                 .TL = l.sp ? tokens / l.tp : tokens,
                 .D = m.d_model,
                 .N = m.num_heads / l.tp,
                 .K = std::max<int64_t>(1, m.num_kv_heads / l.tp),
                 .H = m.head_dim,
                 .F = shard_range(m.d_ff, l.tp, tp_index).size(),
                 .V = vocab.size(),
                 .S = plan.workload().seq_len,
                 .tp = l.tp > 1,
                 .sp = l.sp,
                 .bias = m.qkv_bias,
                 .cpu = plan.cluster().is_local(),
                 .act = activation_dtype(l.precision)};
  ModelGraph g;
  g.blocks[0] = embedding_block(s);
  g.blocks[1] = decoder_block(s, l.recompute == Recompute::kFull);
  g.blocks[2] = head_block(s);
  g.num_heads = s.N;
  g.num_kv_heads = s.K;
  g.head_dim = s.H;
  g.seq_len = s.S;
  g.vocab_begin = vocab.begin;
  g.vocab_rows = vocab.size();
  return g;
}

Flop model_flop_per_token(const ModelSpec& m, int64_t seq_len) {
  double weights = static_cast<double>(m.vocab_size * m.d_model);  // the head, tied or not
  for (const LogicalTensor& t : logical_tensors(m)) {
    if (t.shape.size() == 2 && t.role != ParamRole::kEmbedding && t.role != ParamRole::kLmHead) {
      weights += static_cast<double>(t.numel());
    }
  }
  const double attention =
      static_cast<double>(m.num_layers * m.num_heads * m.head_dim) * static_cast<double>(seq_len);
  return Flop{6.0 * weights + 6.0 * attention};
}

}  // namespace meshwright
