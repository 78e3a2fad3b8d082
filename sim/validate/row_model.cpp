// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/row_model.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "sim/step/published_models.h"
#include "sim/validate/training_stack.h"

namespace meshwright {
namespace {

/// "deepseekv3 (L=4)": the number after "L=".
std::optional<double> layers_in_name(std::string_view name) {
  const size_t at = name.find("L=");
  if (at == std::string_view::npos) return std::nullopt;
  double n = 0;
  for (size_t i = at + 2; i < name.size() && std::isdigit(static_cast<unsigned char>(name[i])) != 0;
       ++i) {
    n = 10 * n + (name[i] - '0');
  }
  return n > 0 ? std::optional(n) : std::nullopt;
}

/// A test model of fewer layers: the same share of each kind, and one of the first kind at least.
void truncate_layers(ModelShape& model, double layers) {
  const double scale = layers / model.num_layers();
  double left = layers;
  for (int i = 0; i < model.num_kinds; ++i) {
    BlockShape& b = model.kinds[static_cast<size_t>(i)];
    b.count = i + 1 == model.num_kinds ? left
                                       : std::min(left, std::max(1.0, std::round(b.count * scale)));
    left -= b.count;
  }
}

}  // namespace

std::optional<ModelShape> row_model(const TrainingRow& r) {
  const std::string_view name = r.text("model");
  const std::optional<ModelShape> known = published_model(name);
  const double hidden = r.positive("hidden", 0);
  double layers = r.positive("layers", 0);
  const bool gated = r.text("gated_mlp") == "1";
  if (hidden > 0 && layers == 0 && r.positive("params_b", 0) > 0) {
    layers = std::round(r.positive("params_b", 0) * 1e9 / (12 * hidden * hidden));
  }
  const bool experts =
      r.positive("ep", 1) > 1 ||
      (known && known->num_kinds > 0 &&
       known->kinds[static_cast<size_t>(known->num_kinds - 1)].ffn.num_experts > 0);
  if (known && (hidden == 0 || layers == 0 || (experts && r.positive("ffn_hidden", 0) == 0))) {
    ModelShape model = *known;
    if (const std::optional<double> l = layers_in_name(name)) {
      truncate_layers(model, *l);
      model.mtp_layers = 0;
    }
    if (mentions(lower_case(name), "w/o mtp")) model.mtp_layers = 0;
    return model;
  }
  if (hidden == 0 || layers == 0) return std::nullopt;
  const double heads = r.positive("heads", std::max(1.0, std::round(hidden / 128)));
  const double head_dim = hidden / heads;
  ModelShape model{.hidden = hidden,
                   .vocab = r.positive("vocab", known ? known->vocab : 51200),
                   .position_rows = gated ? 0 : r.positive("seq_len", 2048),
                   .tied_embeddings = r.text("tied_embed") != "0",
                   .gated_ffn = gated,
                   .bias = !gated,
                   .dropout = gated ? 0 : 0.1};
  model.add({.count = layers,
             .attention = {.num_heads = heads,
                           .num_kv_heads = r.positive("kv_heads", heads),
                           .head_dim = head_dim,
                           .v_head_dim = head_dim},
             .ffn = {.width = r.positive("ffn_hidden", (gated ? 8.0 / 3 : 4.0) * hidden)}});
  return model;
}

}  // namespace meshwright
