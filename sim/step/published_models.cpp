// SPDX-License-Identifier: Apache-2.0
#include "sim/step/published_models.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/json_reader.h"
#include "sim/spec/builtin_documents.h"

namespace meshwright {
namespace {

constexpr const char* kArchitecturesFile = "models/published/architectures.json";

AttentionShape read_attention(ObjectReader& r, double hidden) {
  AttentionShape a;
  a.num_heads = r.number("heads", kPositiveCount);
  a.num_kv_heads = r.number_or("kv_heads", a.num_heads, kPositiveCount);
  a.head_dim = a.v_head_dim = r.number_or("head_dim", hidden / a.num_heads, kPositiveCount);
  a.window = r.number_or("window", 0, kNonNegative);
  if (r.has("mla")) {
    ObjectReader m(r.object("mla"), kArchitecturesFile, r.pointer_to("mla"));
    a.rope_head_dim = m.number("rope_dim", kPositiveCount);
    a.head_dim = m.number("nope_dim", kPositiveCount) + a.rope_head_dim;
    a.v_head_dim = m.number("v_dim", kPositiveCount);
    a.q_lora_rank = m.number("q_lora", kNonNegative);
    a.kv_lora_rank = m.number("kv_lora", kPositiveCount);
    MW_CHECK(m.finish().has_value());
  }
  return a;
}

FfnShape read_experts(ObjectReader& r) {
  return {.width = r.number_or("shared_ffn", 0, kNonNegative),
          .num_experts = r.number_or("experts", 0, kNonNegative),
          .top_k = r.number_or("top_k", 0, kNonNegative),
          .expert_width = r.number_or("expert_ffn", 0, kNonNegative),
          .latent = r.number_or("latent", 0, kNonNegative)};
}

void read_hybrid(const Json& blocks, ModelShape& m) {
  for (const Json& block : blocks) {
    ObjectReader r(block, kArchitecturesFile, "/models/blocks");
    BlockShape b{.count = r.number("count", kPositiveCount)};
    if (r.has("attention")) {
      ObjectReader a(r.object("attention"), kArchitecturesFile, "/models/blocks/attention");
      b.attention = read_attention(a, m.hidden);
      a.ignore("count");
    }
    if (r.has("mamba")) {
      ObjectReader s(r.object("mamba"), kArchitecturesFile, "/models/blocks/mamba");
      b.mamba = {.inner = s.number("inner", kPositiveCount),
                 .num_heads = s.number("heads", kPositiveCount),
                 .groups = s.number("groups", kPositiveCount),
                 .state = s.number("state", kPositiveCount)};
    }
    b.ffn = read_experts(r);
    m.add(b);
  }
}

void read_layers(ObjectReader& r, ModelShape& m) {
  const double layers = r.number("layers", kPositiveCount);
  AttentionShape global = read_attention(r, m.hidden);
  const double window = std::exchange(global.window, 0.0);
  const double windowed = window > 0 ? 1 / r.number_or("window_every", 1, kPositiveCount) : 0;
  AttentionShape local = global;
  local.window = window;
  const FfnShape experts = read_experts(r);
  const double dense =
      experts.num_experts > 0 ? r.number_or("dense_layers", 0, kNonNegative) : layers;
  const FfnShape plain{.width = r.number("ffn", kNonNegative)};
  const auto add = [&](double count, const FfnShape& ffn) {
    if (count * windowed > 0) m.add({.count = count * windowed, .attention = local, .ffn = ffn});
    if (count * (1 - windowed) > 0) {
      m.add({.count = count * (1 - windowed), .attention = global, .ffn = ffn});
    }
  };
  add(dense, plain);
  add(layers - dense, experts);
}

ModelShape read_model(const Json& json) {
  ObjectReader r(json, kArchitecturesFile, "/models");
  r.ignore("name");
  r.ignore("aliases");
  r.ignore("source");
  ModelShape m{.hidden = r.number("hidden", kPositiveCount),
               .vocab = r.number("vocab", kPositiveCount),
               .position_rows = r.number_or("position_rows", 0, kNonNegative),
               .tied_embeddings = r.boolean_or("tied", false),
               .gated_ffn = r.boolean_or("gated", true),
               .bias = r.boolean_or("bias", false),
               .dropout = r.number_or("dropout", 0, kNonNegative),
               .mtp_layers = r.number_or("mtp_layers", 0, kNonNegative)};
  if (r.has("blocks")) {
    read_hybrid(r.array("blocks"), m);
  } else {
    read_layers(r, m);
  }
  const Result<Ok> done = r.finish();
  MW_CHECK(done.has_value(), to_string(done.error()));
  return m;
}

std::string plain_name(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return result;
}

}  // namespace

std::optional<ModelShape> published_model(std::string_view name) {
  static const std::vector<std::pair<std::string, ModelShape>> kModels = [] {
    const std::optional<std::string_view> text = builtin_document("published", "architectures");
    MW_CHECK(text.has_value());
    const Json document = parse_json(*text, kArchitecturesFile).value();
    std::vector<std::pair<std::string, ModelShape>> models;
    for (const Json& json : document["models"]) {
      const ModelShape shape = read_model(json);
      for (const Json& alias : json["aliases"]) models.emplace_back(alias, shape);
    }
    return models;
  }();
  const std::string plain = plain_name(name);
  const std::pair<std::string, ModelShape>* best = nullptr;
  for (const auto& model : kModels) {
    if (plain.find(model.first) == std::string::npos) continue;
    if (!best || model.first.size() > best->first.size()) best = &model;
  }
  if (!best) return std::nullopt;
  return best->second;
}

}  // namespace meshwright
