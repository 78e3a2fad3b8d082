// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/rope_frequencies.h"

#include <cmath>
#include <numbers>

#include "sim/core/json_reader.h"

namespace meshwright {
namespace {

constexpr Range kScalingFactor{1e-6, 1e9};

/// What `llama3` makes of one frequency.
struct Llama3Scaling {
  double factor = 1, low = 1, high = 1, original = 1;

  [[nodiscard]] double of(double frequency) const {
    const double turns = original * frequency / (2 * std::numbers::pi);  // in the original length
    if (turns < low) return frequency / factor;
    if (turns > high) return frequency;
    const double kept = (turns - low) / (high - low);
    return (1 - kept) * frequency / factor + kept * frequency;
  }
};

}  // namespace

Result<std::vector<double>> rope_frequencies(const ModelSpec& model) {
  std::vector<double> out;
  for (int64_t i = 0; i < model.head_dim / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(model.head_dim);
    out.push_back(std::pow(model.rope_theta, exponent));
  }
  if (model.rope_scaling.empty()) return out;
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(model.rope_scaling, "rope_scaling"));
  ObjectReader r(json, "rope_scaling");
  // Older configs say "type".
  const std::string type = r.text_or("rope_type", r.text_or("type", "default"));
  r.ignore("type");
  r.ignore("rope_theta");
  if (type == "linear") {
    const double factor = r.number("factor", kScalingFactor);
    for (double& f : out) f /= factor;
  } else if (type == "llama3") {
    const Llama3Scaling s{
        .factor = r.number("factor", kScalingFactor),
        .low = r.number("low_freq_factor", kScalingFactor),
        .high = r.number("high_freq_factor", kScalingFactor),
        .original = r.number("original_max_position_embeddings", {1, 1e9}),
    };
    for (double& f : out) f = s.of(f);
  } else if (type != "default") {
    r.fail("rope_type", '"' + type + '"', "must be one of default, linear, llama3", "");
  }
  MW_RETURN_IF_ERROR(r.finish());
  return out;
}

}  // namespace meshwright
