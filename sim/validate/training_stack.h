// Which stack a published row ran on: the profile that prices it, and who keeps which copy of a
// parameter.
#pragma once

#include <string>
#include <string_view>

#include "sim/step/step_memory.h"

namespace meshwright {

[[nodiscard]] std::string lower_case(std::string_view text);
[[nodiscard]] bool mentions(std::string_view text, std::string_view part);

/// The first year from 2000 to 2099 that stands as a number of its own in `text`; 0 where none
/// does.
[[nodiscard]] int year_in(std::string_view text);

/// The profile that prices a framework: "Megatron-LM 2021" -> "megatron_classic". Another
/// framework is priced as torchtitan: eager or compiled PyTorch with fused attention.
[[nodiscard]] std::string framework_profile(std::string_view framework,
                                            std::string_view device_class);

/// What a row says about its Megatron-Core beyond the name.
struct MegatronCoreRun {
  int release_year = 0;  ///< 0: not said, priced as the releases before 2026.
  bool overlaps = true;  ///< Communication runs beside computation.
};

/// The profile of Megatron-Core as it was run. Without overlap the release does not matter.
[[nodiscard]] std::string megatron_core_profile(const MegatronCoreRun& run);

/// BF16 under DeepSpeed accumulates gradients in FP32, unsharded.
[[nodiscard]] StateConvention state_convention(const std::string& framework,
                                               std::string_view precision);

}  // namespace meshwright
