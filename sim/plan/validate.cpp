// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/rules.h"

namespace meshwright {

ValidationOutcome validate(std::shared_ptr<const Problem> problem, const Layout& layout) {
  ValidationOutcome outcome;
  Rules rules{.problem = *problem, .layout = layout, .found = {}};
  check_positive(rules);
  if (rules.found.empty()) {
    for (const auto check : {check_axes,
                             check_states,
                             check_tensor_parallel,
                             check_context_parallel,
                             check_experts,
                             check_sequence,
                             check_stages,
                             check_batch,
                             check_schedule,
                             check_engine}) {
      check(rules);
    }
  }
  outcome.violations = std::move(rules.found);
  if (!outcome.violations.empty()) return outcome;
  Layout complete = layout;
  if (complete.stages.empty())
    complete.stages = balanced_stages(problem->model.num_layers, layout.num_parts());
  outcome.plan = Plan(std::move(problem), std::move(complete));
  return outcome;
}

}  // namespace meshwright
