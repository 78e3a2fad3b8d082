// SPDX-License-Identifier: Apache-2.0
#include "exec/model/parameter_store.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/elementwise.h"
#include "kernels/random/fill_normal.h"
#include "kernels/random/tensor_key.h"
#include "sim/mesh/mesh.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {
namespace {

enum class Init { kNormal, kResidualNormal, kOnes, kZeros };

Init init_of(ParamRole role) {
  if (role == ParamRole::kAttnNormBias || role == ParamRole::kFfnNormBias ||
      role == ParamRole::kFinalNormBias)
    return Init::kZeros;
  if (is_norm(role)) return Init::kOnes;
  if (is_bias(role)) return Init::kZeros;
  const bool residual = role == ParamRole::kAttnOut || role == ParamRole::kDown;
  return residual ? Init::kResidualNormal : Init::kNormal;
}

at::Tensor matrix(const at::Tensor& flat, const PackedParam& p) {
  return flat.narrow(0, p.offset, p.rows * p.cols).view({p.rows, p.cols});
}

}  // namespace

ParameterStore::ParameterStore(const Plan& plan, int rank)
    : zero_stage_(plan.layout().zero_stage), table_(plan), placement_(table_.of_rank(rank)) {
  uses_.resize(placement_.buckets.size());
  closed_.assign(placement_.buckets.size(), false);
  list_uses(plan, rank);
  for (const Bucket& b : placement_.buckets) {
    const auto index = static_cast<int>(buckets_.size());
    BucketTensors t;
    t.owned = table_.owned_range(b, rank);
    t.updated = table_.optimizer_sharded() ? t.owned : ShardRange{0, b.padded_numel};
    t.exp_avg = at::zeros({t.updated.size()});
    t.exp_avg_sq = at::zeros({t.updated.size()});
    t.params = at::zeros({b.padded_numel});
    fill(b, t.params, plan.workload().seed, plan.model().num_layers);
    t.own_params = t.params.narrow(0, t.owned.begin, t.owned.size());
    if (shards_weights(index)) {
      t.own_params = t.own_params.clone();
      t.params.reset();
    }
    if (shards_gradient(index)) {
      t.own_grads = at::zeros({t.owned.size()});
    } else {
      t.grads = at::zeros({b.padded_numel});
      t.own_grads = t.grads.narrow(0, t.owned.begin, t.owned.size());
    }
    buckets_.push_back(std::move(t));
    view_weights(index);
    view_gradients(index);
  }
}

void ParameterStore::fill(const Bucket& bucket,
                          const at::Tensor& params,
                          uint64_t seed,
                          int64_t num_layers) const {
  for (const Segment& s : bucket.segments) {
    const LogicalTensor& logical = table_.tensors()[static_cast<size_t>(s.tensor)].logical;
    float* out = params.mutable_data_ptr<float>() + s.offset;
    const Init init = init_of(logical.role);
    if (init == Init::kZeros) continue;
    if (init == Init::kOnes) {
      std::fill_n(out, s.numel(), 1.0F);
      continue;
    }
    const double residual = std::sqrt(2.0 * static_cast<double>(num_layers));
    const double stddev = init == Init::kResidualNormal ? 0.02 / residual : 0.02;
    kernels::fill_normal(out,
                         s.rows,
                         s.cols,
                         logical.shape[1],
                         s.row_begin,
                         s.col_begin,
                         seed,
                         kernels::tensor_key(logical.name),
                         static_cast<float>(stddev));
  }
}

void ParameterStore::list_uses(const Plan& plan, int rank) {
  views_.resize(static_cast<size_t>(num_blocks(plan.model())));
  const auto add = [this](int block, ParamSlot slot, size_t bucket, const PackedParam& p) {
    uses_[bucket].push_back({block, slot, p});
    views_[static_cast<size_t>(block)][static_cast<size_t>(slot)].bucket = static_cast<int>(bucket);
  };
  for (size_t i = 0; i < placement_.buckets.size(); ++i) {
    const Bucket& b = placement_.buckets[i];
    for (const PackedParam& p : b.params) add(b.block, p.slot, i, p);
  }
  const int head = num_blocks(plan.model()) - 1;
  for (const int stage : plan.stage_map().of_rank(Mesh(plan.layout()).coord(rank).pp)) {
    if (plan.blocks_of_stage(stage).second <= head) continue;
    const auto [bucket, p] = placement_.find(head, ParamSlot::kLmHead);
    if (placement_.buckets[static_cast<size_t>(bucket)].block != head)
      add(head, ParamSlot::kLmHead, static_cast<size_t>(bucket), p);
  }
}

void ParameterStore::view_weights(int bucket) {
  const at::Tensor& whole = buckets_[static_cast<size_t>(bucket)].params;
  for (const Use& u : uses_[static_cast<size_t>(bucket)]) {
    ParamView& v = views_[static_cast<size_t>(u.block)][static_cast<size_t>(u.slot)];
    v.weight = whole.defined() ? matrix(whole, u.param) : at::Tensor{};
    v.weight_t = whole.defined() ? v.weight.t() : at::Tensor{};
  }
}

void ParameterStore::view_gradients(int bucket) {
  const at::Tensor& whole = buckets_[static_cast<size_t>(bucket)].grads;
  for (const Use& u : uses_[static_cast<size_t>(bucket)]) {
    ParamView& v = views_[static_cast<size_t>(u.block)][static_cast<size_t>(u.slot)];
    v.grad = whole.defined() ? matrix(whole, u.param) : at::Tensor{};
  }
}

const ParamView& ParameterStore::view(int block, ParamSlot slot) const {
  const ParamView& v = views_[static_cast<size_t>(block)][static_cast<size_t>(slot)];
  MW_CHECK(v.bucket >= 0, "block " + std::to_string(block) + " has no such parameter");
  MW_CHECK(v.weight.defined(),
           "block " + std::to_string(block) + " reads weights that are sharded");
  return v;
}

const at::Tensor& ParameterStore::grad(int block, ParamSlot slot) const {
  const ParamView& v = views_[static_cast<size_t>(block)][static_cast<size_t>(slot)];
  MW_CHECK(v.grad.defined(), "block " + std::to_string(block) + " has no such gradient");
  MW_CHECK(
      !closed_[static_cast<size_t>(v.bucket)],
      "block " + std::to_string(block) + " adds to gradients that have left for their reduction");
  return v.grad;
}

void ParameterStore::start_step() {
  for (const BucketTensors& b : buckets_) (b.grads.defined() ? b.grads : b.own_grads).zero_();
  closed_.assign(buckets_.size(), false);
}

bool ParameterStore::shards_weights(int bucket) const {
  return zero_stage_ >= 3 && !placement_.buckets[static_cast<size_t>(bucket)].persistent;
}

bool ParameterStore::shards_gradient(int bucket) const {
  return zero_stage_ >= 2 && !placement_.buckets[static_cast<size_t>(bucket)].whole_at_end;
}

void ParameterStore::make_whole(int bucket) {
  BucketTensors& b = buckets_[static_cast<size_t>(bucket)];
  MW_CHECK(!b.params.defined(), "a bucket is gathered twice");
  b.params = at::empty({placement_.buckets[static_cast<size_t>(bucket)].padded_numel});
  b.params.narrow(0, b.owned.begin, b.owned.size()).copy_(b.own_params);
  view_weights(bucket);
}

void ParameterStore::release(int bucket) {
  buckets_[static_cast<size_t>(bucket)].params.reset();
  view_weights(bucket);
}

void ParameterStore::open_gradients(int block) {
  if (zero_stage_ < 2) return;
  for (int i = 0; i < num_buckets(); ++i) {
    const Bucket& placed = placement_.buckets[static_cast<size_t>(i)];
    at::Tensor& grads = bucket(i).grads;
    if (placed.block != block || grads.defined()) continue;
    grads = at::zeros({placed.padded_numel});
    closed_[static_cast<size_t>(i)] = false;
    view_gradients(i);
  }
}

void ParameterStore::keep_own_gradient(int bucket) {
  BucketTensors& b = buckets_[static_cast<size_t>(bucket)];
  kernels::add_inplace(b.own_grads.mutable_data_ptr<float>(),
                       b.grads.const_data_ptr<float>() + b.owned.begin,
                       b.owned.size());
  b.grads.reset();
  view_gradients(bucket);
}

at::Tensor ParameterStore::updated_params(int bucket) const {
  return table_.optimizer_sharded() ? buckets_[static_cast<size_t>(bucket)].own_params
                                    : buckets_[static_cast<size_t>(bucket)].params;
}

at::Tensor ParameterStore::updated_grads(int bucket) const {
  return table_.optimizer_sharded() ? buckets_[static_cast<size_t>(bucket)].own_grads
                                    : buckets_[static_cast<size_t>(bucket)].grads;
}

int64_t ParameterStore::weight_bytes() const {
  int64_t elements = 0;
  for (int i = 0; i < num_buckets(); ++i) {
    const BucketTensors& b = buckets_[static_cast<size_t>(i)];
    elements += shards_weights(i) ? b.own_params.numel() : b.params.numel();
  }
  return 4 * elements;
}

int64_t ParameterStore::gradient_bytes() const {
  int64_t elements = 0;
  for (int i = 0; i < num_buckets(); ++i) {
    const BucketTensors& b = buckets_[static_cast<size_t>(i)];
    elements += shards_gradient(i) ? b.own_grads.numel() : b.grads.numel();
  }
  return 4 * elements;
}

int64_t ParameterStore::optimizer_bytes() const {
  int64_t elements = 0;
  for (const BucketTensors& b : buckets_) elements += 2 * b.updated.size();
  return 4 * elements;
}

}  // namespace meshwright
