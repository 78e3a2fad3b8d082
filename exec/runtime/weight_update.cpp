// SPDX-License-Identifier: Apache-2.0
#include "exec/runtime/weight_update.h"

#include <algorithm>

#include "kernels/adamw/adamw.h"

namespace meshwright {

double learning_rate(const OptimizerRecipe& r, int64_t step) {
  if (step >= r.warmup_steps) return r.learning_rate;
  return r.learning_rate * static_cast<double>(step + 1) / static_cast<double>(r.warmup_steps);
}

double clip_scale(const OptimizerRecipe& r, double grad_norm) {
  return r.max_grad_norm > 0 ? std::min(1.0, r.max_grad_norm / (grad_norm + 1e-6)) : 1.0;
}

WeightUpdate::WeightUpdate(ParameterStore& params,
                           const ProcessGroups& groups,
                           const OptimizerRecipe& recipe)
    : params_(params),
      groups_(groups),
      recipe_(recipe),
      pending_(static_cast<size_t>(params.num_buckets())) {}

void WeightUpdate::start_step(int64_t step, double grad_norm) {
  step_ = step;
  grad_scale_ = clip_scale(recipe_, grad_norm);
}

void WeightUpdate::update(int bucket) {
  const BucketTensors& b = params_.bucket(bucket);
  kernels::adamw(params_.updated_params(bucket).mutable_data_ptr<float>(),
                 params_.updated_grads(bucket).const_data_ptr<float>(),
                 b.exp_avg.mutable_data_ptr<float>(),
                 b.exp_avg_sq.mutable_data_ptr<float>(),
                 b.updated.size(),
                 {.learning_rate = learning_rate(recipe_, step_),
                  .beta1 = recipe_.beta1,
                  .beta2 = recipe_.beta2,
                  .eps = recipe_.eps,
                  .weight_decay = recipe_.weight_decay,
                  .step = step_ + 1,
                  .grad_scale = grad_scale_});
}

void WeightUpdate::start_gather(int bucket) {
  if (params_.shards_weights(bucket)) params_.make_whole(bucket);
  pending_[static_cast<size_t>(bucket)] =
      groups_.dp_shard->all_gather_in_place_async(params_.bucket(bucket).params);
}

void WeightUpdate::wait_gather(int bucket) { pending_[static_cast<size_t>(bucket)].wait(); }

}  // namespace meshwright
