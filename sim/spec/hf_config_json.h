// A ModelSpec as the Hugging Face config it came from, so that one parser reads a plan file's model
// and the user's. For .cpp files only (nlohmann/json.hpp).
#pragma once

#include <nlohmann/json.hpp>

#include "sim/spec/model_spec.h"

namespace meshwright {

/// parse_hf_config() of its text gives `model` again, name aside.
[[nodiscard]] nlohmann::json hf_config_json(const ModelSpec& model);

}  // namespace meshwright
