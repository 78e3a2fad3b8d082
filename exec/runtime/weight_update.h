// WeightUpdate: clip, AdamW on the rank's own part of a bucket, and the gather that spreads it
// under ZeRO: once updated (stages 1 and 2), or before a block reads it (stage 3).
#pragma once

#include <vector>

#include "exec/model/parameter_store.h"
#include "exec/runtime/process_groups.h"
#include "sim/spec/workload.h"

namespace meshwright {

/// Linear warm-up to a constant rate; `step` counts from 0.
[[nodiscard]] double learning_rate(const OptimizerRecipe& recipe, int64_t step);

/// What scales gradients so that their global norm is at most recipe.max_grad_norm (PyTorch's
/// clip_grad_norm_).
[[nodiscard]] double clip_scale(const OptimizerRecipe& recipe, double grad_norm);

/// One rank's updates. Not thread-safe.
class WeightUpdate {
 public:
  WeightUpdate(ParameterStore& params, const ProcessGroups& groups, const OptimizerRecipe& recipe);

  /// Before the first update of a step.
  void start_step(int64_t step, double grad_norm);
  void update(int bucket);
  void start_gather(int bucket);
  void wait_gather(int bucket);

 private:
  ParameterStore& params_;
  const ProcessGroups& groups_;
  OptimizerRecipe recipe_;
  int64_t step_ = 0;
  double grad_scale_ = 1;
  std::vector<Pending> pending_;
};

}  // namespace meshwright
