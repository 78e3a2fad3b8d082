// The angles by which a model's rotary positions turn, per token, with the scalings that stretch
// them beyond the length it was first trained on.
//
// Reads: ModelSpec::rope_theta and rope_scaling. Feeds: the worker's tables, and its refusal of
// what it does not know.
#pragma once

#include <vector>

#include "sim/core/result.h"
#include "sim/spec/model_spec.h"

namespace meshwright {

/// Radians per token of the head_dim / 2 pairs: theta^(-2 i / head_dim), and by rope_type
///   "default"  that;
///   "linear"   divided by `factor` (arXiv:2306.15595);
///   "llama3"   divided by `factor` where a turn takes more than original / low_freq_factor tokens,
///              unchanged where it takes less than original / high_freq_factor, and between the two
///              in proportion to original / turn (Llama 3.1's config.json; its formula is in
///              Hugging Face transformers' modeling_rope_utils).
/// Errors: another rope_type, or a factor that is missing or not positive.
[[nodiscard]] Result<std::vector<double>> rope_frequencies(const ModelSpec& model);

}  // namespace meshwright
