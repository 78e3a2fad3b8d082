// What a rank sends and receives in one step, per mesh axis: counted from its Program and operator
// lists.
#pragma once

#include <string>
#include <vector>

#include "sim/core/units.h"
#include "sim/plan/plan.h"

namespace meshwright {

struct AxisTraffic {
  std::string axis;  ///< "tp", "cp", "ep", "pp", "dp", "expert_dp".
  int group_size = 1;
  bool inside_node = true;
  int64_t operations = 0;
  Bytes payload;  ///< Sum of the full tensors that the collectives work on, or of the messages.
};

/// Axes of one rank are left out.
[[nodiscard]] std::vector<AxisTraffic> step_traffic(const Plan& plan, int rank);

}  // namespace meshwright
