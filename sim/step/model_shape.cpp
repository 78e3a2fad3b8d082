// SPDX-License-Identifier: Apache-2.0
#include "sim/step/model_shape.h"

#include <algorithm>

#include "sim/core/check.h"

namespace meshwright {
namespace {

double qkv_outputs(const AttentionShape& a) {
  return a.kv_lora_rank > 0
             ? 0
             : a.num_heads * a.head_dim + a.num_kv_heads * (a.head_dim + a.v_head_dim);
}

/// Matrices, and the norms inside multi-head latent attention.
double attention_weights(double h, const AttentionShape& a) {
  if (a.num_heads == 0) return 0;
  double weights = 0;
  if (a.kv_lora_rank > 0) {
    const double q_in = a.q_lora_rank > 0 ? a.q_lora_rank : h;
    weights += a.q_lora_rank * (h + 1) + q_in * a.num_heads * a.head_dim;
    weights += h * (a.kv_lora_rank + a.rope_head_dim) + a.kv_lora_rank;
    weights += a.kv_lora_rank * a.num_heads * (a.head_dim - a.rope_head_dim + a.v_head_dim);
  } else {
    weights += h * qkv_outputs(a);
  }
  return weights + a.num_heads * a.v_head_dim * h;
}

double attention_parameters(const ModelShape& model, const AttentionShape& a) {
  if (a.num_heads == 0) return 0;
  double n = attention_weights(model.hidden, a);
  if (model.bias || model.qkv_bias) n += qkv_outputs(a);
  if (model.bias) n += model.hidden;
  if (model.qk_norm) n += 2 * a.head_dim;
  return n;
}

double mamba_parameters(double h, const MambaShape& m) {
  if (m.inner == 0) return 0;
  const double conv = m.inner + 2 * m.groups * m.state;
  return h * (2 * m.inner + 2 * m.groups * m.state + m.num_heads) + m.inner * h + 4 * conv + conv +
         3 * m.num_heads + m.inner;
}

double ffn_weights(double h, double width, bool gated) { return (gated ? 3 : 2) * h * width; }

/// Norms of one block, with their biases.
double norm_parameters(const ModelShape& model, const BlockShape& b) {
  const int mixers = (b.attention.num_heads > 0 ? 1 : 0) + (b.mamba.inner > 0 ? 1 : 0) +
                     (b.ffn.width + b.ffn.num_experts > 0 ? 1 : 0);
  const int norms = mixers * (model.post_norms ? 2 : 1);
  return norms * model.hidden * (model.bias ? 2 : 1);
}

double router_parameters(const ModelShape& model, const FfnShape& f) {
  if (f.num_experts == 0) return 0;
  return f.num_experts * (model.hidden + (model.router_bias ? 1 : 0)) +
         (model.shared_gate ? model.hidden : 0);
}

/// Multiply-adds of attention scores and values per token pair, both products.
double score_flops(const AttentionShape& a) {
  return 2 * a.num_heads * (a.head_dim + a.v_head_dim);
}

}  // namespace

BlockShape& ModelShape::add(const BlockShape& block) {
  MW_CHECK(num_kinds < kMaxKinds);
  return kinds[static_cast<size_t>(num_kinds++)] = block;
}

ModelShape model_shape(const ModelSpec& spec) {
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  ModelShape m{
      .hidden = d(spec.d_model),
      .vocab = d(spec.vocab_size),
      .position_rows = spec.positions == PositionKind::kLearned ? d(spec.position_rows) : 0,
      .tied_embeddings = spec.tied_embeddings,
      .gated_ffn = spec.gated_ffn(),
      .bias = spec.linear_bias,
      .qkv_bias = spec.qkv_bias,
      .qk_norm = spec.qk_norm,
      .post_norms = spec.post_norms,
      .router_bias = spec.moe && spec.moe->router_bias,
      .shared_gate = spec.moe && spec.moe->shared_gate,
      .dropout = spec.dropout,
      .mtp_layers = d(spec.num_mtp_layers)};
  AttentionShape a{.num_heads = d(spec.num_heads),
                   .num_kv_heads = d(spec.num_kv_heads),
                   .head_dim = d(spec.head_dim),
                   .v_head_dim = d(spec.head_dim)};
  if (spec.mla) {
    a.head_dim = d(spec.mla->qk_nope_head_dim + spec.mla->qk_rope_head_dim);
    a.v_head_dim = d(spec.mla->v_head_dim);
    a.q_lora_rank = d(spec.mla->q_lora_rank);
    a.kv_lora_rank = d(spec.mla->kv_lora_rank);
    a.rope_head_dim = d(spec.mla->qk_rope_head_dim);
  }
  const double layers = d(spec.num_layers);
  const double dense = spec.moe ? std::min(layers, d(spec.moe->num_dense_layers)) : layers;
  // Windowed layers are spread evenly over dense and expert layers.
  const double windowed = spec.sliding_window ? 1.0 / d(spec.window_every) : 0;
  const auto add = [&](double count, const FfnShape& ffn) {
    if (count <= 0) return;
    AttentionShape local = a;
    if (windowed > 0) {
      local.window = d(*spec.sliding_window);
      m.add({.count = count * windowed, .attention = local, .ffn = ffn});
    }
    if (windowed < 1) m.add({.count = count * (1 - windowed), .attention = a, .ffn = ffn});
  };
  add(dense, {.width = d(spec.d_ff)});
  if (spec.moe) {
    add(layers - dense,
        {.width = d(spec.moe->d_ff_shared),
         .num_experts = d(spec.moe->num_experts),
         .top_k = d(spec.moe->experts_per_token),
         .expert_width = d(spec.moe->d_ff_expert)});
  }
  return m;
}

double dense_parameters(const ModelShape& model, const BlockShape& b) {
  const double h = model.hidden;
  double n = attention_parameters(model, b.attention) + mamba_parameters(h, b.mamba);
  n += ffn_weights(h, b.ffn.width, model.gated_ffn);
  if (model.bias && b.ffn.width > 0) n += (model.gated_ffn ? 2 : 1) * b.ffn.width + h;
  if (b.ffn.latent > 0) n += 2 * h * b.ffn.latent;
  return n + router_parameters(model, b.ffn) + norm_parameters(model, b);
}

double expert_parameters(const ModelShape& model, const BlockShape& b) {
  const double width_in = b.ffn.latent > 0 ? b.ffn.latent : model.hidden;
  return b.ffn.num_experts * ffn_weights(width_in, b.ffn.expert_width, model.gated_ffn);
}

double embedding_parameters(const ModelShape& model) {
  return (model.vocab + model.position_rows) * model.hidden;
}

double dense_parameters_of_rank(const ModelShape& model, const BlockShape& b, double tp) {
  const double h = model.hidden;
  const AttentionShape& a = b.attention;
  double whole = norm_parameters(model, b) + router_parameters(model, b.ffn);
  double kv = 0;
  if (a.num_heads > 0) {
    if (model.bias) whole += h;
    if (model.qk_norm) whole += 2 * a.head_dim;
    if (a.kv_lora_rank > 0) {
      whole += a.q_lora_rank * (h + 1) + h * (a.kv_lora_rank + a.rope_head_dim) + a.kv_lora_rank;
    } else {
      kv = a.num_kv_heads * (a.head_dim + a.v_head_dim) *
           (h + (model.bias || model.qkv_bias ? 1 : 0));
    }
  }
  if (model.bias && b.ffn.width > 0) whole += h;
  const double split = dense_parameters(model, b) - whole - kv;
  return whole + split / tp + kv / std::min(tp, std::max(1.0, a.num_kv_heads));
}

double embedding_parameters_of_rank(const ModelShape& model, double tp) {
  return (model.vocab / tp + model.position_rows) * model.hidden;
}

double final_norm_parameters(const ModelShape& model) {
  return (model.bias ? 2 : 1) * model.hidden;
}

double total_parameters(const ModelShape& model) {
  double n = embedding_parameters(model) + final_norm_parameters(model);
  if (!model.tied_embeddings) n += model.vocab * model.hidden;
  for (int i = 0; i < model.num_kinds; ++i) {
    const BlockShape& b = model.kinds[static_cast<size_t>(i)];
    n += b.count * (dense_parameters(model, b) + expert_parameters(model, b));
  }
  return n;
}

double active_parameters(const ModelShape& model) {
  double n = total_parameters(model);
  for (int i = 0; i < model.num_kinds; ++i) {
    const BlockShape& b = model.kinds[static_cast<size_t>(i)];
    if (b.ffn.num_experts == 0) continue;
    n -= b.count * expert_parameters(model, b) * (1 - b.ffn.top_k / b.ffn.num_experts);
  }
  return n;
}

double model_flops(const ModelShape& model, double batch, double seq, bool causal) {
  const double h = model.hidden;
  double per_token = 2 * h * model.vocab;
  for (int i = 0; i < model.num_kinds; ++i) {
    const BlockShape& b = model.kinds[static_cast<size_t>(i)];
    double weights = attention_weights(h, b.attention) + mamba_parameters(h, b.mamba) +
                     ffn_weights(h, b.ffn.width, model.gated_ffn) + b.ffn.num_experts * h;
    if (b.ffn.num_experts > 0) {
      weights += expert_parameters(model, b) * b.ffn.top_k / b.ffn.num_experts;
    }
    const double window = b.attention.window;
    const double seen = window > 0 && window < seq ? window : seq * (causal ? 0.5 : 1.0);
    per_token += b.count * (2 * weights + score_flops(b.attention) * seen);
  }
  return 3 * batch * seq * per_token;
}

}  // namespace meshwright
