// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/executor_support.h"

namespace meshwright {

std::optional<Error> executor_refuses(const Plan& plan) {
  const Layout& l = plan.layout();
  if (l.schedule != ScheduleKind::kGpipe && l.schedule != ScheduleKind::k1f1b) {
    return Error{.where = "/layout/schedule",
                 .field = "schedule",
                 .value = std::string(to_string(l.schedule)),
                 .rule = "can be planned and simulated, but the worker does not run it yet",
                 .remedy = "plan again with --layout schedule=1f1b,virtual_stages=1"};
  }
  return std::nullopt;
}

}  // namespace meshwright
