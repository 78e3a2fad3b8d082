// SPDX-License-Identifier: Apache-2.0
#include "exec/model/parameter_store.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "kernels/random/fill_normal.h"
#include "kernels/random/tensor_key.h"
#include "sim/mesh/mesh.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {
namespace {

enum class Init { kNormal, kResidualNormal, kOnes, kZeros };

Init init_of(ParamRole role) {
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
    : table_(plan), placement_(table_.of_rank(rank)) {
  for (const Bucket& b : placement_.buckets) {
    BucketTensors t;
    t.owned = table_.owned_range(b, rank);
    t.updated = table_.optimizer_sharded() ? t.owned : ShardRange{0, b.padded_numel};
    t.params = at::zeros({b.padded_numel});
    t.grads = at::zeros({b.padded_numel});
    t.exp_avg = at::zeros({t.updated.size()});
    t.exp_avg_sq = at::zeros({t.updated.size()});
    fill(b, t.params, plan.workload().seed, plan.model().num_layers);
    buckets_.push_back(std::move(t));
  }
  closed_.assign(buckets_.size(), false);
  make_views(plan, rank);
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

void ParameterStore::make_views(const Plan& plan, int rank) {
  views_.resize(static_cast<size_t>(num_blocks(plan.model())));
  const auto add = [this](int block, ParamSlot slot, int bucket, const PackedParam& p) {
    const BucketTensors& t = buckets_[static_cast<size_t>(bucket)];
    ParamView& v = views_[static_cast<size_t>(block)][static_cast<size_t>(slot)];
    v.weight = matrix(t.params, p);
    v.weight_t = v.weight.t();
    v.grad = matrix(t.grads, p);
    v.bucket = bucket;
  };
  for (size_t i = 0; i < placement_.buckets.size(); ++i) {
    for (const PackedParam& p : placement_.buckets[i].params) {
      add(placement_.buckets[i].block, p.slot, static_cast<int>(i), p);
    }
  }
  const int head = num_blocks(plan.model()) - 1;
  for (const int stage : plan.stage_map().of_rank(Mesh(plan.layout()).coord(rank).pp)) {
    if (plan.blocks_of_stage(stage).second <= head) continue;
    const auto [bucket, p] = placement_.find(head, ParamSlot::kLmHead);
    add(head, ParamSlot::kLmHead, bucket, p);
  }
}

const ParamView& ParameterStore::view(int block, ParamSlot slot) const {
  const ParamView& v = views_[static_cast<size_t>(block)][static_cast<size_t>(slot)];
  MW_CHECK(v.bucket >= 0, "block " + std::to_string(block) + " has no such parameter");
  return v;
}

const at::Tensor& ParameterStore::grad(int block, ParamSlot slot) const {
  const ParamView& v = view(block, slot);
  MW_CHECK(
      !closed_[static_cast<size_t>(v.bucket)],
      "block " + std::to_string(block) + " adds to gradients that have left for their reduction");
  return v.grad;
}

void ParameterStore::start_step() {
  for (BucketTensors& b : buckets_) b.grads.zero_();
  closed_.assign(buckets_.size(), false);
}

int64_t ParameterStore::weight_bytes() const { return 4 * placement_.padded_parameters(); }

int64_t ParameterStore::gradient_bytes() const { return 4 * placement_.padded_parameters(); }

int64_t ParameterStore::optimizer_bytes() const {
  int64_t elements = 0;
  for (const BucketTensors& b : buckets_) elements += 2 * b.updated.size();
  return 4 * elements;
}

}  // namespace meshwright
