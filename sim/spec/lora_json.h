// JSON form of a LoraSpec, in workloads and in plan files. For .cpp files only.
#pragma once

#include <optional>

#include "sim/core/json_reader.h"
#include "sim/spec/lora.h"

namespace meshwright {

[[nodiscard]] Json lora_to_json(const LoraSpec& lora);
/// The format of the base may be left out where `base` is its default.
[[nodiscard]] Result<LoraSpec> lora_from_json(const Json& json,
                                              const std::string& origin,
                                              const std::string& pointer,
                                              std::optional<BaseFormat> base);

}  // namespace meshwright
