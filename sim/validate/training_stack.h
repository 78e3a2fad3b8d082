// Which stack a published row ran on: the profile that prices it, and who keeps which copy of a
// parameter.
#pragma once

#include <string>
#include <string_view>

#include "sim/step/step_memory.h"

namespace meshwright {

[[nodiscard]] std::string lower_case(std::string_view text);
[[nodiscard]] bool mentions(std::string_view text, std::string_view part);

/// The profile that prices a framework: "Megatron-LM 2021" -> "megatron_classic". Another
/// framework is priced as torchtitan: eager or compiled PyTorch with fused attention.
[[nodiscard]] std::string framework_profile(std::string_view framework,
                                            std::string_view source,
                                            std::string_view device_class);

/// BF16 under DeepSpeed accumulates gradients in FP32, unsharded.
[[nodiscard]] StateConvention state_convention(const std::string& framework,
                                               std::string_view precision);

}  // namespace meshwright
