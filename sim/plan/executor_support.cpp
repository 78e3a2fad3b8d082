// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/executor_support.h"

namespace meshwright {

std::optional<Error> executor_refuses(const Plan& plan) {
  if (!plan.cluster().is_local()) {
    return Error{.where = "/cluster",
                 .field = "cluster",
                 .value = plan.cluster().name,
                 .rule = "the worker runs on CPU ranks only",
                 .remedy = "plan with --cluster " + std::to_string(plan.world_size()) + "xlocal"};
  }
  return std::nullopt;
}

}  // namespace meshwright
