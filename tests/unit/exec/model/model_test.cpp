// SPDX-License-Identifier: Apache-2.0
// The whole operator lists against autograd: a model of the same weights written with
// differentiable ATen calls in FP64. Loss and the gradient of every logical tensor must agree.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "exec/comm/communicator.h"
#include "exec/data/batch_reader.h"
#include "exec/runtime/trainer.h"
#include "kernels/dropout/dropout.h"
#include "kernels/random/tensor_key.h"
#include "sim/spec/logical_tensors.h"
#include "tests/unit/exec/spawn_ranks.h"
#include "tests/unit/exec/tiny_plan.h"

namespace meshwright {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

/// Every logical tensor of a one-rank bucket list, in FP64, copied out of `buckets`.
Tensors logical(const Trainer& trainer, const std::vector<std::vector<float>>& buckets) {
  Tensors out;
  for (size_t i = 0; i < buckets.size(); ++i) {
    for (const Segment& s : trainer.placement().buckets[i].segments) {
      const LogicalTensor& t = trainer.table().tensors()[static_cast<size_t>(s.tensor)].logical;
      auto* data = const_cast<float*>(buckets[i].data() + s.offset);
      out[t.name] = at::from_blob(data, t.shape).to(at::kDouble, false, true);
    }
  }
  return out;
}

// Shape letters: B sequences, S tokens, D width, N/K query and key/value heads, H head width.
class Oracle {
 public:
  Oracle(const ModelSpec& m, Tensors weights, int64_t first_token, uint64_t seed)
      : m_(m), w_(std::move(weights)), first_token_(first_token), seed_(seed) {
    for (auto& [name, t] : w_) t.requires_grad_(true);
  }

  at::Tensor loss(const at::Tensor& ids, const at::Tensor& labels) {
    at::Tensor x = at::embedding(w("model.embed_tokens.weight"), ids);
    if (m_.positions == PositionKind::kLearned) {
      const int64_t first = m_.position_rows - m_.max_seq_len;
      x = x + w("model.embed_positions.weight").narrow(0, first, ids.size(1));
    }
    x = dropped(x, 0, "embedding");
    for (int64_t i = 0; i < m_.num_layers; ++i) {
      const std::string p = "model.layers." + std::to_string(i) + ".";
      const int block = static_cast<int>(i) + 1;
      x = x +
          dropped(attention(norm(x, p + "input_layernorm"), p + "self_attn."), block, "attention");
      x = x + dropped(feed_forward(norm(x, p + "post_attention_layernorm"), p + "mlp."),
                      block,
                      "feed_forward");
    }
    x = norm(x, "model.norm");
    const at::Tensor& head = w(m_.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight");
    return at::cross_entropy_loss(at::matmul(x, head.t()).view({-1, m_.vocab_size}),
                                  labels.view({-1}));
  }

  const Tensors& weights() const { return w_; }

 private:
  const at::Tensor& w(const std::string& name) const { return w_.at(name); }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    const at::Tensor y = at::matmul(x, w(name + ".weight").t());
    const auto bias = w_.find(name + ".bias");
    return bias == w_.end() ? y : y + bias->second;
  }
  /// The trainer's own masks: those of global element 0 of each site and on.
  at::Tensor dropped(const at::Tensor& x, int block, const std::string& part) const {
    if (m_.dropout == 0) return x;
    std::vector<float> kept(static_cast<size_t>(x.numel()), 1.0F);
    std::vector<uint8_t> mask(kept.size());
    kernels::dropout_forward(kept.data(),
                             mask.data(),
                             x.numel(),
                             static_cast<uint64_t>(first_token_ * x.size(-1)),
                             seed_,
                             kernels::tensor_key("dropout." + std::to_string(block) + "." + part),
                             m_.dropout);
    return x * at::from_blob(kept.data(), x.sizes()).to(at::kDouble, false, true);
  }
  at::Tensor rms_norm(const at::Tensor& x, const std::string& name) const {
    return x * at::rsqrt(at::pow(x, 2).mean(-1, true) + m_.norm_eps) * w(name + ".weight");
  }
  at::Tensor norm(const at::Tensor& x, const std::string& name) const {
    if (m_.norm == NormKind::kRmsNorm) return rms_norm(x, name);
    const at::Tensor centered = x - x.mean(-1, true);
    const at::Tensor variance = at::pow(centered, 2).mean(-1, true);
    return centered * at::rsqrt(variance + m_.norm_eps) * w(name + ".weight") + w(name + ".bias");
  }
  at::Tensor feed_forward(const at::Tensor& x, const std::string& p) const {
    const at::Tensor up = linear(x, p + "up_proj");
    const at::Tensor act = m_.ffn == FfnKind::kGelu   ? at::gelu(up, "tanh")
                           : m_.ffn == FfnKind::kRelu ? at::relu(up)
                                                      : at::silu(linear(x, p + "gate_proj")) * up;
    return linear(act, p + "down_proj");
  }
  at::Tensor heads(const at::Tensor& x, const std::string& name, int64_t n) const {
    const at::Tensor y = linear(x, name + "_proj").view({x.size(0), x.size(1), n, m_.head_dim});
    const bool normed = m_.qk_norm && !name.ends_with("v");
    return (normed ? rms_norm(y, name + "_norm") : y).transpose(1, 2);
  }
  at::Tensor rotate(const at::Tensor& x) const {
    if (m_.positions == PositionKind::kLearned) return x;
    const int64_t half = m_.head_dim / 2;
    const at::Tensor exponent =
        at::arange(half, at::kDouble) * (-2.0 / static_cast<double>(m_.head_dim));
    const at::Tensor angle =
        at::arange(x.size(2), at::kDouble).view({-1, 1}) * at::pow(m_.rope_theta, exponent);
    const at::Tensor a = x.narrow(-1, 0, half);
    const at::Tensor b = x.narrow(-1, half, half);
    return at::cat(
        {a * at::cos(angle) - b * at::sin(angle), b * at::cos(angle) + a * at::sin(angle)}, -1);
  }
  at::Tensor attention(const at::Tensor& x, const std::string& p) const {
    const int64_t group = m_.num_heads / m_.num_kv_heads;
    const at::Tensor q = rotate(heads(x, p + "q", m_.num_heads));
    const at::Tensor k = rotate(heads(x, p + "k", m_.num_kv_heads)).repeat_interleave(group, 1);
    const at::Tensor v = heads(x, p + "v", m_.num_kv_heads).repeat_interleave(group, 1);
    const at::Tensor future = at::ones({x.size(1), x.size(1)}, at::kDouble).triu(1) * -1e300;
    const at::Tensor scores =
        at::matmul(q, k.transpose(-1, -2)) / std::sqrt(static_cast<double>(m_.head_dim)) + future;
    const at::Tensor y = at::matmul(at::softmax(scores, -1), v).transpose(1, 2).contiguous();
    return linear(y.view({x.size(0), x.size(1), -1}), p + "o_proj");
  }

  const ModelSpec& m_;
  Tensors w_;
  int64_t first_token_;  ///< Of the step, in all of the run.
  uint64_t seed_;
};

void expect_equals_autograd(const TinyPlan& tiny) {
  at::set_num_threads(1);
  const Plan plan = make_plan(tiny);
  const auto source = random_source(plan.model().vocab_size, plan.workload().seq_len, 5);
  const auto world = CommWorld::connect("file:unused", 0, 1, std::chrono::seconds(1));
  std::vector<std::vector<float>> gradients;
  TrainerOptions options;
  options.on_gradients = [&](int bucket, int64_t, std::span<const float> g) {
    if (bucket == 0) gradients.clear();
    gradients.emplace_back(g.begin(), g.end());
  };
  Trainer trainer(plan, *world, *source, options);
  // Some steps first, so that norm weights are not 1 and biases not 0.
  constexpr int64_t kStep = 4;
  for (int64_t step = 0; step < kStep; ++step) trainer.step(step);
  std::vector<std::vector<float>> weights;
  for (size_t i = 0; i < trainer.placement().buckets.size(); ++i) {
    const auto w = trainer.weights(static_cast<int>(i));
    weights.emplace_back(w.begin(), w.end());
  }
  const int64_t batch = plan.workload().global_batch;
  const int64_t seq = plan.workload().seq_len;
  Oracle oracle(plan.model(), logical(trainer, weights), kStep * batch * seq, plan.workload().seed);
  const at::Tensor ids = at::empty({batch, seq}, at::kLong);
  const at::Tensor labels = at::empty({batch, seq}, at::kLong);
  BatchReader reader(*source, plan, 0);
  for (int mb = 0; mb < plan.num_micro_batches(); ++mb) {
    const int64_t offset = mb * plan.layout().micro_batch * seq;
    reader.read(kStep,
                mb,
                ids.mutable_data_ptr<int64_t>() + offset,
                labels.mutable_data_ptr<int64_t>() + offset);
  }
  const at::Tensor loss = oracle.loss(ids, labels);
  loss.backward();

  const StepResult ours = trainer.step(kStep);
  EXPECT_NEAR(ours.loss, loss.item<double>(), 1e-6 * loss.item<double>());
  double sum_of_squares = 0;
  const Tensors got = logical(trainer, gradients);
  ASSERT_EQ(got.size(), oracle.weights().size());
  double elements = 0;
  for (const auto& [name, w] : oracle.weights()) elements += static_cast<double>(w.numel());
  for (const auto& [name, w] : oracle.weights()) {
    const double norm = w.grad().norm().item<double>();
    // A key's bias shifts all scores of a query alike: without a rotation its gradient is rounding.
    const double floor =
        1e-3 * ours.grad_norm * std::sqrt(static_cast<double>(w.numel()) / elements);
    const double error = (got.at(name) - w.grad()).norm().item<double>();
    EXPECT_GT(norm, 0) << name;
    EXPECT_LT(error, 1e-5 * std::max(norm, floor)) << name;
    sum_of_squares += norm * norm;
  }
  EXPECT_NEAR(ours.grad_norm, std::sqrt(sum_of_squares), 1e-6 * ours.grad_norm);
}

TEST(Model, EqualsAutograd) {
  spawn_one([] { expect_equals_autograd({.num_layers = 2}); });
}

TEST(Model, EqualsAutogradWithTiedEmbeddingsAndBias) {
  spawn_one([] { expect_equals_autograd({.num_layers = 2, .tied = true, .qkv_bias = true}); });
}

TEST(Model, EqualsAutogradWithNormedQueriesAndKeys) {
  spawn_one([] {
    TinyPlan tiny{.num_layers = 2, .num_heads = 6, .num_kv_heads = 3, .qk_norm = true};
    tiny.layout.micro_batch = 2;
    expect_equals_autograd(tiny);
  });
}

TEST(Model, EqualsAutogradAsGpt2) {
  spawn_one([] {
    TinyPlan tiny{
        .num_layers = 2, .num_kv_heads = 4, .tied = true, .gpt = FfnKind::kGelu, .dropout = 0.2};
    tiny.layout.micro_batch = 2;
    tiny.layout.recompute = Recompute::kFull;
    expect_equals_autograd(tiny);
  });
}

TEST(Model, EqualsAutogradAsOpt) {
  spawn_one(
      [] { expect_equals_autograd({.num_layers = 2, .num_kv_heads = 4, .gpt = FfnKind::kRelu}); });
}

TEST(Model, EqualsAutogradWithRecomputeAndLargerMicroBatches) {
  spawn_one([] {
    TinyPlan tiny{
        .num_layers = 2, .num_heads = 6, .num_kv_heads = 3, .qkv_bias = true, .seq_len = 40};
    tiny.layout.micro_batch = 2;
    tiny.layout.recompute = Recompute::kFull;
    expect_equals_autograd(tiny);
  });
}

}  // namespace
}  // namespace meshwright
