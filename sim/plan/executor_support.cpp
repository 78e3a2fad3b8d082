// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/executor_support.h"

namespace meshwright {

std::optional<Error> executor_refuses(const Plan& plan) {
  const ScheduleKind schedule = plan.layout().schedule;
  if (schedule == ScheduleKind::kDualPipe) {  // needs a group that sums the two copies' gradients
    return Error{.where = "/layout/schedule",
                 .field = "schedule",
                 .value = std::string(to_string(schedule)),
                 .rule = "can be planned and simulated, but the worker does not run it yet",
                 .remedy = "plan again with --layout schedule=1f1b"};
  }
  return std::nullopt;
}

}  // namespace meshwright
