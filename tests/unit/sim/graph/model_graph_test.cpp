// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/model_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::ideal_plan;
using testing::near_rel;
using testing::small_model;

/// The model of the executor measurements: 5,640 floats are saved per token and layer.
ModelSpec measured_model() {
  return {.name = "measured",
          .vocab_size = 4096,
          .d_model = 384,
          .d_ff = 1024,
          .num_layers = 6,
          .num_heads = 6,
          .num_kv_heads = 2,
          .head_dim = 64,
          .max_seq_len = 4096};
}

std::set<std::string> names(const BlockGraph& block, const std::set<BufferId>& ids) {
  std::set<std::string> out;
  for (const BufferId b : ids) out.insert(block.buffers[static_cast<size_t>(b)].name);
  return out;
}

/// Buffers that are alive after walking `steps` from `live`; checks that each is allocated and
/// released once.
std::set<BufferId> survivors(const std::vector<OperatorStep>& steps, std::set<BufferId> live) {
  for (const OperatorStep& s : steps) {
    for (const BufferId b : s.allocates) EXPECT_TRUE(live.insert(b).second);
    for (const BufferId b : s.op.inputs) EXPECT_TRUE(live.contains(b));
    for (const BufferId b : s.op.outputs) EXPECT_TRUE(live.contains(b));
    for (const BufferId b : s.releases) EXPECT_EQ(live.erase(b), 1u);
  }
  return live;
}

std::set<BufferId> mentioned(const std::vector<OperatorStep>& steps) {
  std::set<BufferId> out;
  for (const OperatorStep& s : steps) {
    out.insert(s.op.inputs.begin(), s.op.inputs.end());
    out.insert(s.op.outputs.begin(), s.op.outputs.end());
  }
  return out;
}

double saved_bytes(const BlockGraph& block) {
  std::set<BufferId> saved = survivors(block.forward, {block.input});
  saved.erase(block.input);  // counted as the output of the block before
  double bytes = 0;
  for (const BufferId b : saved)
    bytes += static_cast<double>(block.buffers[static_cast<size_t>(b)].bytes());
  return bytes;
}

double matmul_flop(const std::vector<OperatorStep>& steps) {
  double flop = 0;
  for (const OperatorStep& s : steps) flop += is_linear(s.op.kind) ? s.op.flop.v : 0.0;
  return flop;
}

const BufferSpec& buffer(const BlockGraph& block, const std::string& name) {
  const auto it = std::find_if(block.buffers.begin(),
                               block.buffers.end(),
                               [&](const BufferSpec& b) { return b.name == name; });
  MW_CHECK(it != block.buffers.end(), name);
  return *it;
}

TEST(ModelGraph, SavedFloatsPerTokenAndLayerAreTheMeasuredCount) {
  const ModelGraph g = build_model_graph(ideal_plan(measured_model(), {.micro_batch = 2}, 256), 0);
  // h1 d, r1 1, qkv (H+2K)D, att HD, lse H, x1 d, h2 d, r2 1, gu 2F, act F, y d.
  EXPECT_EQ(384 + 1 + 640 + 384 + 6 + 384 + 384 + 1 + 2048 + 1024 + 384, 5640);
  EXPECT_EQ(saved_bytes(g.of(BlockKind::kDecoder)), 4.0 * 5640 * 2 * 256);
}

TEST(ModelGraph, WhatSurvivesForwardIsWhatBackwardReads) {
  for (const Layout& l : testing::legal_layouts()) {
    if (l.recompute != Recompute::kNone) continue;
    const ModelGraph g = build_model_graph(ideal_plan(small_model(), l), 0);
    for (const BlockGraph& b : g.blocks) {
      std::set<BufferId> live =
          survivors(b.forward, b.input >= 0 ? std::set{b.input} : std::set<BufferId>{});
      if (b.output >= 0) live.erase(b.output);  // the next block's
      std::set<BufferId> expected;
      const std::set<BufferId> written = mentioned(b.forward);
      for (const BufferId x : mentioned(b.backward)) {
        if (written.contains(x) && x != b.output) expected.insert(x);
      }
      EXPECT_EQ(names(b, live), names(b, expected)) << summary(l);
    }
  }
}

TEST(ModelGraph, BackwardReleasesAllButTheGradientItHandsOn) {
  for (const Layout& l : testing::legal_layouts()) {
    const ModelGraph g = build_model_graph(ideal_plan(small_model(), l), 0);
    for (const BlockGraph& b : g.blocks) {
      std::set<BufferId> live =
          survivors(b.forward, b.input >= 0 ? std::set{b.input} : std::set<BufferId>{});
      if (b.output >= 0) live.erase(b.output);
      live = survivors(b.recompute, live);
      if (b.kind != BlockKind::kHead) live.insert(b.grad);
      live = survivors(b.backward, live);
      EXPECT_EQ(live, b.kind == BlockKind::kEmbedding ? std::set<BufferId>{} : std::set{b.grad});
    }
  }
}

TEST(ModelGraph, RecomputeKeepsOnlyTheInputAndDropsTheLastMatmul) {
  const BlockGraph b =
      build_model_graph(
          ideal_plan(small_model(), {.micro_batch = 2, .recompute = Recompute::kFull}), 0)
          .of(BlockKind::kDecoder);
  std::set<BufferId> live = survivors(b.forward, {b.input});
  live.erase(b.output);
  EXPECT_EQ(names(b, live), std::set<std::string>{"x"});
  std::vector<ParamSlot> forward, again;
  for (const OperatorStep& s : b.forward)
    if (is_linear(s.op.kind)) forward.push_back(s.op.param);
  for (const OperatorStep& s : b.recompute)
    if (is_linear(s.op.kind)) again.push_back(s.op.param);
  EXPECT_EQ(
      forward,
      (std::vector{ParamSlot::kQkv, ParamSlot::kAttnOut, ParamSlot::kGateUp, ParamSlot::kDown}));
  EXPECT_EQ(again, (std::vector{ParamSlot::kQkv, ParamSlot::kAttnOut, ParamSlot::kGateUp}));
}

TEST(ModelGraph, RecomputeDropsTheLastCollectiveToo) {
  const BlockGraph b =
      build_model_graph(
          ideal_plan(small_model(), {.tp = 2, .micro_batch = 2, .recompute = Recompute::kFull}), 0)
          .of(BlockKind::kDecoder);
  const auto collectives = [](const std::vector<OperatorStep>& steps) {
    return std::count_if(
        steps.begin(), steps.end(), [](const OperatorStep& s) { return is_collective(s.op.kind); });
  };
  EXPECT_EQ(collectives(b.forward), 2);
  EXPECT_EQ(collectives(b.recompute), 1);
  EXPECT_EQ(collectives(b.backward), 2);
}

// Megatron-LM's num_floating_point_operations: per layer forward 4 T h p_q (h + h g/a) and 2 T h f
// 3 for SwiGLU, where p_q = H a / h; times three for forward and backward.
TEST(ModelGraph, MatmulFlopOfALayer) {
  const ModelSpec m = small_model();
  for (const int tp : {1, 2, 8}) {
    double forward = 0;
    double backward = 0;
    const Plan plan = ideal_plan(m, {.tp = tp, .micro_batch = 2});
    for (int t = 0; t < tp; ++t) {
      const BlockGraph b = build_model_graph(plan, t).of(BlockKind::kDecoder);
      forward += matmul_flop(b.forward);
      backward += matmul_flop(b.backward);
    }
    const double tokens = 2 * 16;
    const double q = 64, d = 32, f = 45;
    const double kv_copies =
        tp > 2 ? tp / 2.0 : 1.0;  // 2 key/value heads, one per rank from tp 2 on
    const double attention = 2 * tokens * d * (2 * q + 2 * 16 * kv_copies);
    EXPECT_DOUBLE_EQ(forward, attention + 2 * tokens * d * f * 3) << tp;
    EXPECT_DOUBLE_EQ(backward, 2 * forward) << tp;
  }
}

TEST(ModelGraph, AttentionFlopIsTheCausalHalf) {
  const BlockGraph b =
      build_model_graph(ideal_plan(small_model(), {.micro_batch = 2}), 0).of(BlockKind::kDecoder);
  for (const OperatorStep& s : b.forward) {
    if (s.op.kind != OpKind::kAttention) continue;
    EXPECT_DOUBLE_EQ(s.op.flop.v, 2.0 * (2 * 16 * 16) * (8 * 8));  // 2 sum(L^2) h p_q
  }
}

TEST(ModelGraph, ModelFlopPerTokenIsSixPerWeightPlusAttention) {
  const ModelSpec m = testing::builtin_model("llama-3-70b");
  const double matmul_weights = 70'553'706'496.0 - 128256.0 * 8192 - 8192.0 * (2 * 80 + 1);
  const double attention = 6.0 * 80 * 8192 * 4096;
  EXPECT_DOUBLE_EQ(model_flop_per_token(m, 4096).v, 6 * matmul_weights + attention);
  // arXiv:2104.04473 Eq. 3 counts the full attention square and 96 = 72 + 24 with recompute; per
  // token and without recompute 72 L h^2 (1 + s/(6h) + V/(12hL)) for a GPT layer of 12 h^2 weights.
  const ModelSpec gpt{.name = "gpt",
                      .vocab_size = 51200,
                      .d_model = 12288,
                      .d_ff = 4 * 12288 * 2 / 3,
                      .num_layers = 96,
                      .num_heads = 96,
                      .num_kv_heads = 96,
                      .head_dim = 128,
                      .max_seq_len = 2048};
  const double h = 12288, layers = 96, s = 2048, v = 51200;
  const double equation = 72 * layers * h * h * (1 + s / (6 * h) / 2 + v / (12 * h * layers));
  EXPECT_TRUE(near_rel(model_flop_per_token(gpt, 2048).v, equation, 1e-12));
}

TEST(ModelGraph, SequenceParallelismShardsWhatLiesBetweenTheMatmuls) {
  const Layout tp{.tp = 4, .micro_batch = 2};
  Layout sp = tp;
  sp.sp = true;
  const BlockGraph whole =
      build_model_graph(ideal_plan(small_model(), tp), 0).of(BlockKind::kDecoder);
  const BlockGraph shard =
      build_model_graph(ideal_plan(small_model(), sp), 0).of(BlockKind::kDecoder);
  for (const char* name : {"x", "attn_norm", "attn_rstd", "ffn_norm", "ffn_rstd", "grad"}) {
    EXPECT_EQ(buffer(shard, name).bytes() * 4, buffer(whole, name).bytes()) << name;
  }
  for (const char* name : {"qkv", "attention", "lse", "gate_up", "act"}) {
    EXPECT_EQ(buffer(shard, name).bytes(), buffer(whole, name).bytes()) << name;
  }
  EXPECT_LT(saved_bytes(shard), saved_bytes(whole));
}

TEST(ModelGraph, BlockKinds) {
  EXPECT_EQ(block_kind(0, 6), BlockKind::kEmbedding);
  EXPECT_EQ(block_kind(1, 6), BlockKind::kDecoder);
  EXPECT_EQ(block_kind(4, 6), BlockKind::kDecoder);
  EXPECT_EQ(block_kind(5, 6), BlockKind::kHead);
}

TEST(ModelGraph, VocabularyShardsCoverEachRowOnce) {
  const Plan plan = ideal_plan(small_model(), {.tp = 8, .micro_batch = 1});
  int64_t next = 0;
  for (int t = 0; t < 8; ++t) {
    const ModelGraph g = build_model_graph(plan, t);
    EXPECT_EQ(g.vocab_begin, next);
    next += g.vocab_rows;
  }
  EXPECT_EQ(next, 61);
}

/// What each operator reads, as the history of the values: an operator's result is a name made of
/// its kind, its parameter and its inputs. Equal histories mean equal arithmetic.
class Histories {
 public:
  /// Runs the list; returns the operators with what they read.
  std::multiset<std::string> run(const std::vector<OperatorStep>& steps) {
    std::multiset<std::string> done;
    for (const OperatorStep& s : steps) {
      std::set<std::string> reads;
      for (const BufferId b : s.op.inputs) reads.insert(value(b));
      for (const BufferId b : s.op.outputs) {
        if (values_.contains(b)) reads.insert(value(b));  // updated in place
      }
      std::string text = std::string(to_string(s.op.kind)) + "/" +
                         std::to_string(static_cast<int>(s.op.param)) + "(";
      for (const std::string& r : reads) text += r + ",";
      const std::string key = std::to_string(std::hash<std::string>{}(text));
      done.insert(std::string(to_string(s.op.kind)) + key);
      int index = 0;
      for (const BufferId b : s.op.outputs) values_[b] = key + "#" + std::to_string(index++);
      for (const BufferId b : s.releases) values_.erase(b);
    }
    return done;
  }

 private:
  std::string value(BufferId b) {
    const auto [it, fresh] = values_.try_emplace(b, "buffer " + std::to_string(b));
    return it->second;
  }
  std::map<BufferId, std::string> values_;
};

TEST(ModelGraph, SplitBackwardDoesTheSameArithmetic) {
  for (const Layout& l : testing::all_layouts()) {
    for (const bool bias : {false, true}) {
      ModelSpec m = small_model();
      m.qkv_bias = bias;
      if (bias) m.family = ModelFamily::kQwen2;
      const ModelGraph g = build_model_graph(ideal_plan(m, l), 0);
      for (const BlockGraph& b : g.blocks) {
        Histories whole, split;
        std::multiset<std::string> halves = split.run(b.backward_input);
        halves.merge(split.run(b.backward_weight));
        EXPECT_EQ(whole.run(b.backward), halves) << summary(l);
        EXPECT_EQ(matmul_flop(b.backward),
                  matmul_flop(b.backward_input) + matmul_flop(b.backward_weight));
      }
    }
  }
}

TEST(ModelGraph, SplitBackwardDefersWeightGradientsAndReleasesEverything) {
  for (const Layout& l : testing::all_layouts()) {
    const ModelGraph g = build_model_graph(ideal_plan(small_model(), l), 0);
    for (const BlockGraph& b : g.blocks) {
      for (const OperatorStep& s : b.backward_input)
        EXPECT_NE(s.op.kind, OpKind::kLinearBackwardWeight);
      for (const OperatorStep& s : b.backward_weight) {
        EXPECT_NE(s.op.kind, OpKind::kLinearBackwardInput);
        EXPECT_NE(s.op.kind, OpKind::kAttentionBackward);
      }
      std::set<BufferId> live =
          survivors(b.forward, b.input >= 0 ? std::set{b.input} : std::set<BufferId>{});
      if (b.output >= 0) live.erase(b.output);
      live = survivors(b.recompute, live);
      if (b.kind != BlockKind::kHead) live.insert(b.grad);
      live = survivors(b.backward_input, live);
      if (b.kind == BlockKind::kEmbedding) {
        EXPECT_EQ(b.input_grad, -1);
        EXPECT_TRUE(b.backward_input.empty());
      } else {
        EXPECT_EQ(live.erase(b.input_grad), 1u);  // handed on
        EXPECT_EQ(buffer(b, "grad").bytes(), b.buffers[static_cast<size_t>(b.input_grad)].bytes());
      }
      live = survivors(b.backward_weight, live);
      EXPECT_TRUE(live.empty()) << summary(l);
    }
  }
}

}  // namespace
}  // namespace meshwright
