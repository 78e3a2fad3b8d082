// Opening a token file for a model: the checks that run does before it starts ranks, and each rank
// again.
#pragma once

#include <string>

#include "sim/data/token_file.h"
#include "sim/plan/plan.h"

namespace meshwright {

/// Errors: TokenFile::open()'s; a vocabulary larger than the model's; no whole sequence.
[[nodiscard]] Result<TokenFile> open_training_data(const std::string& path, const Plan& plan);

}  // namespace meshwright
