// Architectures of well-known models, for rows and questions that give a name and no sizes.
//
// Reads: models/published/architectures.json. A name is matched without case and punctuation by the
// longest alias it contains: "LLAMA3.1_405B" and "Llama 3.1 405B (pretrain)" are one model.
#pragma once

#include <optional>
#include <string_view>

#include "sim/step/model_shape.h"

namespace meshwright {

/// Nothing for a name that no alias is part of.
[[nodiscard]] std::optional<ModelShape> published_model(std::string_view name);

}  // namespace meshwright
