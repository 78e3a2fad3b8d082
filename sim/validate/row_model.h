// The architecture that a row of a table of training steps was measured with.
#pragma once

#include <optional>

#include "sim/step/model_shape.h"
#include "sim/validate/training_row.h"

namespace meshwright {

/// The sizes in the row; where they are missing, the published model of that name, of as many
/// layers as the name says ("deepseekv3 (L=4)"). Nothing where neither is known.
[[nodiscard]] std::optional<ModelShape> row_model(const TrainingRow& row);

}  // namespace meshwright
