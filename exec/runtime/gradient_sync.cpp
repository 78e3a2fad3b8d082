// SPDX-License-Identifier: Apache-2.0
#include "exec/runtime/gradient_sync.h"

#include <algorithm>
#include <utility>

#include "kernels/elementwise/elementwise.h"

namespace meshwright {

GradientSync::GradientSync(ParameterStore& params,
                           const ProcessGroups& groups,
                           const Plan& plan,
                           int rank)
    : params_(params), groups_(groups), pending_(static_cast<size_t>(params.num_buckets())) {
  MW_CHECK(plan.world_size() == groups.world->size());
  // All buckets lie over the same groups: the worker does not spread experts.
  const std::vector<Bucket>& buckets = params.placement().buckets;
  counts_owned_range_ =
      !buckets.empty() && params.table().counts_owned_range(buckets.front(), rank);
}

void GradientSync::sum_copies(int bucket) {
  params_.close_gradients(bucket);
  const at::Tensor& grads = params_.bucket(bucket).grads;
  for (const PartialRange& r : params_.placement().buckets[static_cast<size_t>(bucket)].partial) {
    groups_.copies.at(r.copies)->all_reduce(grads.narrow(0, r.offset, r.numel));
  }
}

void GradientSync::sum_tied(int bucket) {
  params_.close_gradients(bucket);
  groups_.tie->all_reduce(params_.bucket(bucket).grads);
}

void GradientSync::start_reduce(int bucket) {
  params_.close_gradients(bucket);
  if (std::exchange(skip_next_reduce_, false)) return;
  const at::Tensor& grads = params_.bucket(bucket).grads;
  pending_[static_cast<size_t>(bucket)] =
      params_.table().optimizer_sharded() ? groups_.dp_shard->reduce_scatter_in_place_async(grads)
                                          : groups_.dp->all_reduce_async(grads);
}

void GradientSync::wait_reduce(int bucket) {
  Pending& pending = pending_[static_cast<size_t>(bucket)];
  if (pending.valid()) {  // not left out by fault injection
    pending.wait();
    const BucketTensors& b = params_.bucket(bucket);
    if (params_.table().optimizer_sharded() && groups_.dp_replicate->size() > 1)
      groups_.dp_replicate->all_reduce(b.grads.narrow(0, b.owned.begin, b.owned.size()));
  }
  if (params_.shards_gradient(bucket)) params_.keep_own_gradient(bucket);
}

double GradientSync::sum_of_squares() {
  if (!counts_owned_range_) return 0;
  double sum = 0;
  for (int i = 0; i < params_.num_buckets(); ++i) {
    const BucketTensors& b = params_.bucket(i);
    const float* own = b.own_grads.const_data_ptr<float>();
    for (const Segment& s : params_.placement().buckets[static_cast<size_t>(i)].segments) {
      if (!s.counted && !count_every_copy_) continue;
      const int64_t begin = std::max(s.offset, b.owned.begin);
      const int64_t end = std::min(s.offset + s.numel(), b.owned.end);
      if (begin < end) sum += kernels::sum_of_squares(own + begin - b.owned.begin, end - begin);
    }
  }
  return sum;
}

}  // namespace meshwright
