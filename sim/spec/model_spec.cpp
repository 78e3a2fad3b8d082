// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/model_spec.h"

namespace meshwright {

std::string_view to_string(ModelFamily family) {
  switch (family) {
    case ModelFamily::kLlama:
      return "llama";
    case ModelFamily::kMistral:
      return "mistral";
    case ModelFamily::kQwen2:
      return "qwen2";
    case ModelFamily::kQwen3:
      return "qwen3";
    case ModelFamily::kGpt2:
      return "gpt2";
    case ModelFamily::kOpt:
      return "opt";
    case ModelFamily::kGemma2:
      return "gemma2";
    case ModelFamily::kPhi3:
      return "phi3";
    case ModelFamily::kMixtral:
      return "mixtral";
    case ModelFamily::kQwen3Moe:
      return "qwen3_moe";
    case ModelFamily::kDeepseekV3:
      return "deepseek_v3";
  }
  return "";
}

int num_blocks(const ModelSpec& model) { return static_cast<int>(model.num_layers) + 2; }

}  // namespace meshwright
