// JSON form of a layout, shared by plan files and the planner's output. For .cpp files only.
#pragma once

#include "sim/core/json_reader.h"
#include "sim/plan/plan.h"

namespace meshwright {

/// {dp_replicate, dp_shard, tp, sp, cp, pp, ep, virtual_stages, micro_batch, num_micro_batches,
/// zero_stage, recompute, schedule, precision, stages[]}.
[[nodiscard]] Json layout_to_json(const Plan& plan);
[[nodiscard]] Result<Layout> layout_from_json(const Json& json,
                                              const std::string& origin,
                                              const std::string& pointer);

}  // namespace meshwright
