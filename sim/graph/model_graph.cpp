// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/model_graph.h"

#include <algorithm>

#include "sim/graph/attention_branch.h"
#include "sim/graph/block_builder.h"
#include "sim/graph/feed_forward_branch.h"
#include "sim/mesh/shard.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {
namespace {

BlockGraph embedding_block(const ModelSpec& m, const ShardShapes& s) {
  BlockBuilder b(BlockKind::kEmbedding, m, s);
  const BufferId ids = b.buffer("ids", {s.T}, DType::kInt64);
  const BufferId rows = b.act("rows", s.T, s.D);
  const BufferId shard = b.shard("out");
  const BufferId grad = b.act("grad", s.TL, s.D);
  b.simple(OpKind::kLoadIds, {}, {ids});
  b.simple(OpKind::kEmbedding, {ids}, {rows}, ParamSlot::kTable);
  const BufferId out = b.sum_partial(rows, shard);
  const bool learned = m.positions == PositionKind::kLearned;
  if (learned) b.simple(OpKind::kPosition, {}, {out}, ParamSlot::kPosition);
  BufferId mask = -1;
  if (m.dropout > 0) {
    mask = b.buffer("mask", {s.TL, s.D}, DType::kUInt8);
    b.simple(OpKind::kDropout, {}, {out, mask}, ParamSlot::kTable);
  }
  b.block().output = out;
  b.block().grad = grad;
  b.to_backward();
  if (mask >= 0) b.simple(OpKind::kDropoutBackward, {mask}, {grad});
  if (learned) b.simple(OpKind::kPositionBackward, {grad}, {}, ParamSlot::kPosition);
  const BufferId whole = b.gathered(grad, b.whole("grad_whole"));
  b.simple(OpKind::kEmbeddingBackward, {whole, ids}, {}, ParamSlot::kTable);
  return b.finish(Recompute::kNone);
}

BlockGraph decoder_block(const ModelSpec& m,
                         const ShardShapes& s,
                         Recompute recompute,
                         BlockKind kind) {
  const bool moe = kind == BlockKind::kMoeDecoder || kind == BlockKind::kKeptMoeDecoder;
  BlockBuilder b(kind, m, s);
  const BufferId x = b.act("x", s.TL, s.D);
  const BufferId grad = b.act("grad", s.TL, s.D);
  b.block().input = x;
  b.block().grad = grad;
  AttentionBranch attention(b);
  FeedForwardBranch feed_forward(b, moe);
  b.block().output = feed_forward.forward(attention.forward(x));
  b.to_backward();
  feed_forward.backward(grad);
  attention.backward(grad);
  return b.finish(recompute);
}

BlockGraph head_block(const ModelSpec& m, const ShardShapes& s) {
  BlockBuilder b(BlockKind::kHead, m, s);
  const BufferId x = b.act("x", s.TL, s.D);
  const BufferId labels = b.buffer("labels", {s.T}, DType::kInt64);
  const BufferId logits = b.act("logits", s.T, s.V);
  const BufferId row_max = b.vec("row_max", s.T);
  const BufferId stats = b.buffer("stats", {2, s.T}, DType::kFloat32);
  const BufferId grad = b.act("grad", s.TL, s.D);
  b.block().input = x;
  b.block().grad = grad;
  const NormState norm =
      norm_forward(b, "final", x, s.TL, ParamSlot::kFinalNorm, ParamSlot::kFinalNormBias);
  b.linear(b.gathered(norm.y, b.whole("norm_whole")), logits, ParamSlot::kLmHead);
  if (m.logit_softcap > 0) b.simple(OpKind::kSoftcap, {}, {logits});
  b.simple(OpKind::kLoadLabels, {}, {labels});
  b.simple(OpKind::kLogitMax, {logits}, {row_max});
  if (s.tp)
    b.collective(OpKind::kAllReduceMax, {}, {row_max}, Bytes{4.0 * static_cast<double>(s.T)});
  b.simple(OpKind::kLogitSum, {row_max, labels}, {logits, stats});
  if (s.tp) b.collective(OpKind::kAllReduce, {}, {stats}, Bytes{8.0 * static_cast<double>(s.T)});
  Operator& loss = b.simple(OpKind::kCrossEntropy, {stats, labels}, {logits});
  // BF16 logits are widened to FP32 for the loss.
  if (s.act == DType::kBFloat16) loss.workspace = Bytes{4.0 * static_cast<double>(s.T * s.V)};

  b.to_backward();
  const BufferId dnorm = b.act("dnorm", s.T, s.D);
  if (m.logit_softcap > 0) b.simple(OpKind::kSoftcapBackward, {}, {logits});
  b.linear_backward_input(logits, dnorm, ParamSlot::kLmHead);
  b.linear_backward_weight(logits, b.gathered(norm.y, b.whole("norm_again")), ParamSlot::kLmHead);
  const BufferId dn = b.sum_partial(dnorm, b.shard("dnorm_shard"));
  b.simple(OpKind::kZero, {}, {grad});
  norm_backward(b, norm, dn, grad);
  return b.finish(Recompute::kNone);
}

}  // namespace

BlockKind block_kind(const Plan& plan, int index) {
  const ModelSpec& model = plan.model();
  if (index == 0) return BlockKind::kEmbedding;
  if (index == num_blocks(model) - 1) return BlockKind::kHead;
  const bool kept = plan.layout().recompute_layers > 0 && !plan.recomputes(index);
  if (model.is_moe_layer(index - 1))
    return kept ? BlockKind::kKeptMoeDecoder : BlockKind::kMoeDecoder;
  return kept ? BlockKind::kKeptDecoder : BlockKind::kDecoder;
}

ModelGraph build_model_graph(const Plan& plan, int tp_index) {
  const ModelSpec& m = plan.model();
  const ShardShapes s = shard_shapes(plan, tp_index);
  const ShardRange vocab = shard_range(m.vocab_size, plan.layout().tp, tp_index);
  const Recompute recompute = plan.layout().recompute;
  ModelGraph g;
  const auto decoder = [&](BlockKind kind, Recompute r) {
    g.blocks[static_cast<int>(kind)] = decoder_block(m, s, r, kind);
  };
  g.blocks[static_cast<int>(BlockKind::kEmbedding)] = embedding_block(m, s);
  decoder(BlockKind::kDecoder, recompute);
  if (m.moe) decoder(BlockKind::kMoeDecoder, recompute);
  if (plan.layout().recompute_layers > 0) {
    decoder(BlockKind::kKeptDecoder, Recompute::kNone);
    if (m.moe) decoder(BlockKind::kKeptMoeDecoder, Recompute::kNone);
  }
  g.blocks[static_cast<int>(BlockKind::kHead)] = head_block(m, s);
  for (int b = 0; b < num_blocks(m); ++b) g.kinds.push_back(block_kind(plan, b));
  g.num_heads = s.N;
  g.num_kv_heads = s.K;
  g.head_dim = s.H;
  g.seq_len = s.S;
  g.sequence_shards = s.sp;
  // OPT's table begins with two rows for padding.
  g.position_offset = std::max<int64_t>(0, m.position_rows - m.max_seq_len);
  g.vocab_begin = vocab.begin;
  g.vocab_rows = vocab.size();
  return g;
}

Flop model_flop_per_token(const ModelSpec& m, int64_t seq_len) {
  double weights = static_cast<double>(m.vocab_size * m.d_model);  // the head, tied or not
  for (const LogicalTensor& t : logical_tensors(m)) {
    if (t.shape.size() == 1 || t.role == ParamRole::kEmbedding || t.role == ParamRole::kPosition ||
        t.role == ParamRole::kLmHead) {
      continue;
    }
    const double share = is_expert(t.role) ? static_cast<double>(m.moe->experts_per_token) /
                                                 static_cast<double>(m.moe->num_experts)
                                           : 1.0;
    weights += share * static_cast<double>(t.numel());
  }
  // Scores over the query-key width, weighted values over the value width.
  const int64_t values = m.mla ? m.mla->v_head_dim : m.head_dim;
  const double attention = static_cast<double>(m.num_layers * m.num_heads) *
                           static_cast<double>(m.head_dim + values) / 2.0 *
                           static_cast<double>(seq_len);
  return Flop{6.0 * weights + 6.0 * attention};
}

}  // namespace meshwright
