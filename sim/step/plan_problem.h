// A plan in the terms of the closed-form step model.
//
// Reads: a Problem and a Layout. Feeds: the cost model, which prices the blocks of GPU plans with
// it, so that the planner's figures are those that `validate` holds against published runs.
#pragma once

#include <optional>

#include "sim/plan/plan.h"
#include "sim/step/step_inputs.h"

namespace meshwright {

/// What the step model knows of a cluster under one framework.
struct StepStack {
  DeviceFacts device;
  LinkFacts links;
  FrameworkProfile framework;
};

/// Nothing for CPU ranks, and for a device whose class has no fitted constants. Figures that the
/// cluster's own document gives (peak, bandwidths, memory) replace the published ones. The
/// framework is the Megatron that was measured on the device's class: of 2021-22 on Volta and
/// Ampere, Megatron-Core after.
[[nodiscard]] std::optional<StepStack> step_stack(const ClusterSpec& cluster);

[[nodiscard]] StepProblem step_problem(const StepStack& stack, const Plan& plan);

/// The plan's layout. Zero-bubble V and DualPipe are priced alike.
[[nodiscard]] StepLayout step_layout(const Plan& plan);

/// The part of the layout that fixes a block's cost.
[[nodiscard]] ShardLayout shard_layout(const Layout& layout);

}  // namespace meshwright
