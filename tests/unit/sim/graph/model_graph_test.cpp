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

/// A GPT of Korthikanti et al. (arXiv:2205.05198): LayerNorm, GELU of width 4 h, biases, dropout,
/// learned positions.
ModelSpec korthikanti_gpt(int64_t hidden, int64_t heads, int64_t layers) {
  ModelSpec m{.name = "gpt",
              .family = ModelFamily::kGpt2,
              .vocab_size = 51200,
              .d_model = hidden,
              .d_ff = 4 * hidden,
              .num_layers = layers,
              .num_heads = heads,
              .num_kv_heads = heads,
              .head_dim = hidden / heads,
              .max_seq_len = 2048,
              .tied_embeddings = true};
  m.norm = NormKind::kLayerNorm;
  m.ffn = FfnKind::kGelu;
  m.positions = PositionKind::kLearned;
  m.position_rows = 2048;
  m.linear_bias = true;
  m.dropout = m.attention_dropout = 0.1;
  return m;
}

/// Bytes that one layer keeps for backward, the input included and the statistics of norms (two
/// floats per token, which the paper leaves out) aside.
double kept_activations(const Plan& plan) {
  const ModelGraph g = build_model_graph(plan, 0);
  const BlockGraph& layer = g.of(BlockKind::kDecoder);
  std::set<BufferId> kept = survivors(layer.forward, {layer.input});
  kept.erase(layer.output);
  double bytes = 0;
  for (const BufferId b : kept) {
    const BufferSpec& spec = layer.buffers[static_cast<size_t>(b)];
    if (spec.shape.size() > 1) bytes += static_cast<double>(spec.bytes());
  }
  return bytes;
}

struct ActivationCase {
  const char* name;
  int64_t hidden, heads, layers, micro_batch;
  int tp;
  double layers_in_memory;  ///< Of the first stage: L (1 + (p - 1) / (p v)).
  double none_gib;          ///< TP without SP: sbh (10 + 24/t + 5 a s / (h t)).
  double selective_sp_gib;  ///< 34 sbh / t.
};

class Korthikanti : public ::testing::TestWithParam<ActivationCase> {};

// FORMULAS of the paper's table 2 and figures 1 and 7 in GiB, exact: 22B, 175B, 530B and 1T.
TEST_P(Korthikanti, ActivationsAreExact) {
  const ActivationCase& c = GetParam();
  const double gib = 1073741824.0;
  const auto kept = [&](bool sp, Recompute recompute) {
    const auto problem = testing::make_problem(korthikanti_gpt(c.hidden, c.heads, c.layers),
                                               testing::builtin_cluster("8xa100-80g"),
                                               2048,
                                               c.micro_batch,
                                               Precision::kBf16);
    return kept_activations(testing::make_plan(problem,
                                               {.tp = c.tp,
                                                .sp = sp,
                                                .micro_batch = c.micro_batch,
                                                .recompute = recompute,
                                                .flash_attention = false})) *
           c.layers_in_memory / gib;
  };
  EXPECT_DOUBLE_EQ(kept(false, Recompute::kNone), c.none_gib) << c.name;
  EXPECT_DOUBLE_EQ(kept(true, Recompute::kSelective), c.selective_sp_gib) << c.name;
}

INSTANTIATE_TEST_SUITE_P(
    ModelGraph,
    Korthikanti,
    ::testing::Values(
        ActivationCase{"22B", 6144, 64, 48, 4, 8, 48, 59.25, 9.5625},
        ActivationCase{"175B", 12288, 96, 96, 1, 8, 96 * (1 + 7.0 / 24), 66.84375, 12.3515625},
        ActivationCase{"530B", 20480, 128, 105, 1, 8, 105 + 34, 114.0234375, 23.076171875},
        ActivationCase{"1T", 25600, 160, 128, 1, 8, 128, 131.25, 26.5625}));

/// Every family's graph: each buffer is written before it is read and released once, also under
/// full recompute; one rank has no collectives, and with two the sums are there.
TEST(ModelGraph, EveryFamilyIsWellFormed) {
  for (const char* name : {"gpt2",
                           "opt-125m",
                           "qwen3-0.6b",
                           "gemma-2-2b",
                           "phi-3-mini-4k",
                           "mixtral-8x7b",
                           "qwen3-30b-a3b",
                           "deepseek-v3"}) {
    for (const int tp : {1, 2}) {
      for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
        const auto problem = testing::make_problem(testing::builtin_model(name),
                                                   testing::builtin_cluster("8xh100"),
                                                   1024,
                                                   8,
                                                   Precision::kBf16);
        const Plan plan = testing::make_plan(
            problem, {.dp_replicate = 8 / tp, .tp = tp, .sp = tp > 1, .recompute = recompute});
        const ModelGraph g = build_model_graph(plan, 0);
        for (int b = 0; b < num_blocks(plan.model()); ++b) {
          const BlockGraph& block = g.block(b);
          std::set<BufferId> live;
          if (block.input >= 0) live.insert(block.input);
          live = survivors(block.forward, live);
          live.erase(block.output);
          live = survivors(block.recompute, live);
          if (block.kind != BlockKind::kHead) live.insert(block.grad);
          std::set<BufferId> split = survivors(block.backward_input, live);
          split.erase(block.input_grad);
          EXPECT_TRUE(survivors(block.backward_weight, split).empty()) << name << " block " << b;
          live = survivors(block.backward, live);
          live.erase(block.grad);
          EXPECT_TRUE(live.empty()) << name << " block " << b;
          const bool communicates =
              std::any_of(block.forward.begin(), block.forward.end(), [](const OperatorStep& s) {
                return is_collective(s.op.kind);
              });
          EXPECT_EQ(communicates, tp > 1) << name << " block " << b;
          if (b > 3) break;
        }
      }
    }
  }
}

/// Matmul FLOP of the operator lists are 2 per active weight and token: nothing is left out.
TEST(ModelGraph, ForwardFlopAreTwoPerActiveWeight) {
  for (const char* name : {"gpt2",
                           "qwen3-0.6b",
                           "gemma-2-2b",
                           "phi-3-mini-4k",
                           "mixtral-8x7b",
                           "qwen3-30b-a3b",
                           "deepseek-v3"}) {
    const auto problem = testing::make_problem(testing::builtin_model(name),
                                               testing::builtin_cluster("1xh100"),
                                               1024,
                                               1,
                                               Precision::kBf16);
    const ModelGraph g = build_model_graph(testing::make_plan(problem, {}), 0);
    double flop = 0;
    for (int b = 0; b < num_blocks(problem->model); ++b) {
      for (const OperatorStep& s : g.block(b).forward) flop += s.op.flop.v;
    }
    EXPECT_NEAR(3 * flop / 1024 / model_flop_per_token(problem->model, 1024).v, 1.0, 1e-9) << name;
  }
}

TEST(ModelGraph, BlockKinds) {
  const Plan plan = ideal_plan(small_model(), {});
  EXPECT_EQ(block_kind(plan, 0), BlockKind::kEmbedding);
  EXPECT_EQ(block_kind(plan, 1), BlockKind::kDecoder);
  EXPECT_EQ(block_kind(plan, 4), BlockKind::kDecoder);
  EXPECT_EQ(block_kind(plan, 5), BlockKind::kHead);
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
      if (b.forward.empty()) continue;  // experts, which this model has not
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
