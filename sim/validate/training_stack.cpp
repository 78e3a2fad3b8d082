// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/training_stack.h"

#include <algorithm>
#include <cctype>

namespace meshwright {

std::string lower_case(std::string_view text) {
  std::string s(text);
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return s;
}

bool mentions(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string framework_profile(std::string_view framework,
                              std::string_view source,
                              std::string_view device_class) {
  const std::string f = lower_case(framework);
  const std::string s = lower_case(source);
  const bool before_hopper = device_class == "v100" || device_class == "a100";
  const bool dated_old = mentions(f, "2019") || mentions(f, "2020") || mentions(f, "2021") ||
                         mentions(f, "2022") || mentions(f, "zero-bubble");
  if (mentions(f, "megatron-deepspeed")) return "megatron_deepspeed";
  if (mentions(f, "deepspeed")) return "deepspeed";
  if (mentions(f, "composer") || mentions(f, "foundry") || mentions(s, "foundry"))
    return "composer";
  if (mentions(f, "megatron-core") || mentions(f, "nemo") || mentions(f, "bridge") ||
      mentions(f, "megascale")) {
    return "megatron_core";
  }
  // Megatron-LM of the years of V100 and A100 has no fused attention; on later devices it is
  // Megatron-Core.
  if (mentions(f, "megatron"))
    return dated_old || before_hopper ? "megatron_classic" : "megatron_core";
  if (mentions(f, "llmq") || mentions(f, "llm.c")) return "native";
  return "torchtitan";
}

StateConvention state_convention(const std::string& framework, std::string_view precision) {
  if (framework == "torchtitan" || framework == "composer") return StateConvention::kTorchFsdp;
  if (framework.starts_with("megatron_core") || framework == "megatron_classic") {
    return StateConvention::kMegatron;
  }
  return mentions(precision, "bf16") ? StateConvention::kDeepSpeedBf16
                                     : StateConvention::kDeepSpeed;
}

}  // namespace meshwright
