// What this project's worker can run of what can be planned.
//
// Reads: a Plan. Feeds: planner (which proposes nothing on `local` that could not run there), run,
// verify and the worker itself.
#pragma once

#include <optional>

#include "sim/core/result.h"
#include "sim/plan/plan.h"

namespace meshwright {

/// Why the worker refuses the plan, with the field and the remedy; nothing when it runs it.
[[nodiscard]] std::optional<Error> executor_refuses(const Plan& plan);

}  // namespace meshwright
