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

int year_in(std::string_view text) {
  const auto digit = [&](size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (!digit(i)) continue;
    size_t end = i;
    while (digit(end)) ++end;
    if (end - i == 4 && text.substr(i, 2) == "20") {
      return 2000 + 10 * (text[i + 2] - '0') + (text[i + 3] - '0');
    }
    i = end;
  }
  return 0;
}

std::string megatron_core_profile(const MegatronCoreRun& run) {
  // Whole-iteration CUDA graphs and the faster expert dispatch came with the releases of 2026.
  constexpr int kGraphedReleases = 2026;
  if (!run.overlaps) return "megatron_core_plain";
  return run.release_year >= kGraphedReleases ? "megatron_core_2026" : "megatron_core";
}

std::string framework_profile(std::string_view framework, std::string_view device_class) {
  const std::string f = lower_case(framework);
  const bool before_hopper = device_class == "v100" || device_class == "a100";
  const bool dated_old = mentions(f, "2019") || mentions(f, "2020") || mentions(f, "2021") ||
                         mentions(f, "2022") || mentions(f, "zero-bubble");
  if (mentions(f, "megatron-deepspeed")) return "megatron_deepspeed";
  if (mentions(f, "deepspeed")) return "deepspeed";
  if (mentions(f, "composer") || mentions(f, "foundry")) return "composer";
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
