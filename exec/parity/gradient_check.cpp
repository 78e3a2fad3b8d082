// SPDX-License-Identifier: Apache-2.0
#include "exec/parity/gradient_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "exec/comm/communicator.h"
#include "sim/core/hash.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {
namespace {

constexpr size_t kSums = 3;
constexpr double kNobody = -std::numeric_limits<double>::infinity();
constexpr double kSmallTensorFloor = 1e-3;
constexpr std::chrono::minutes kTimeout{2};

/// 53 bits, exact in a double.
double hash_of(std::span<const float> values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return static_cast<double>(fnv1a(bytes) >> 11);
}

double relative(double value, double reference) {
  return std::abs(value - reference) / std::max(std::abs(reference), 1e-30);
}

/// GradientCheck::parts_differ_.
std::vector<char> parts_that_differ(const PlacementTable& table, const Mesh& mesh, int rank) {
  std::vector<char> differ(table.tensors().size());
  std::vector<std::optional<std::pair<int64_t, int64_t>>> first(differ.size());
  for (const int other : mesh.group(GroupKind::kTp, rank)) {
    const RankPlacement placement = table.of_rank(other);
    for (const Bucket& b : placement.buckets) {
      for (const Segment& s : b.segments) {
        auto& place = first[static_cast<size_t>(s.tensor)];
        const std::pair here{s.offset, b.padded_numel};
        if (place && *place != here) differ[static_cast<size_t>(s.tensor)] = 1;
        place = here;
      }
    }
  }
  return differ;
}

}  // namespace

ParityReference run_reference(const Plan& plan, const SampleSource& samples) {
  const auto world = CommWorld::connect("file:unused", 0, 1, kTimeout);
  const PlacementTable table(plan);
  const RankPlacement placement = table.of_rank(0);
  ParityReference out;
  out.gradients.resize(table.tensors().size());
  TrainerOptions options;
  options.on_gradients = [&](int bucket, int64_t, std::span<const float> gradients) {
    for (const Segment& s : placement.buckets[static_cast<size_t>(bucket)].segments) {
      const auto values =
          gradients.subspan(static_cast<size_t>(s.offset), static_cast<size_t>(s.numel()));
      out.gradients[static_cast<size_t>(s.tensor)].assign(values.begin(), values.end());
    }
  };
  Trainer trainer(plan, *world, samples, options);
  const StepResult step = trainer.step(0);
  out.loss = step.loss;
  out.grad_norm = step.grad_norm;
  return out;
}

GradientCheck::GradientCheck(const Plan& plan,
                             const PlacementTable& table,
                             const RankPlacement& placement,
                             int rank,
                             const ParityReference& reference)
    : table_(table),
      placement_(placement),
      reference_(reference),
      rank_(rank),
      layout_(plan.layout()),
      coord_(Mesh(plan.layout()).coord(rank)),
      sums_(kSums * table.tensors().size()),
      parts_differ_(parts_that_differ(table, Mesh(layout_), rank)),
      hashes_(2 * table.tensors().size() * static_cast<size_t>(layout_.tp * layout_.dp_shard),
              kNobody) {}

void GradientCheck::add(int bucket_index, int64_t first, std::span<const float> gradients) {
  const Bucket& bucket = placement_.buckets[static_cast<size_t>(bucket_index)];
  const ShardRange owned = table_.owned_range(bucket, rank_);
  const bool sharded = table_.optimizer_sharded();
  for (const Segment& s : bucket.segments) {
    const auto tensor = static_cast<size_t>(s.tensor);
    const TensorPlacement& placement = table_.tensors()[tensor];
    const std::vector<float>& reference = reference_.gradients[tensor];
    const int64_t whole_cols = placement.logical.shape.size() > 1 ? placement.logical.shape[1] : 1;
    const int64_t begin = std::max(s.offset, owned.begin);
    const int64_t end = std::min(s.offset + s.numel(), owned.end);
    if (s.counted && table_.counts_owned_range(bucket, rank_)) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t local = i - s.offset;
        const int64_t row = s.row_begin + local / s.cols;
        const int64_t col = s.col_begin + local % s.cols;
        const double expected = reference[static_cast<size_t>(row * whole_cols + col)];
        const double difference =
            static_cast<double>(gradients[static_cast<size_t>(i - first)]) - expected;
        sums_[kSums * tensor] += difference * difference;
        sums_[kSums * tensor + 1] += expected * expected;
        sums_[kSums * tensor + 2] += 1;
      }
    }
    // Valid bits: all of the segment, or the owned part where the optimizer is sharded.
    const int64_t from = sharded ? begin : s.offset;
    const int64_t to = sharded ? end : s.offset + s.numel();
    if (from >= to) continue;
    const bool alone = sharded && parts_differ_[tensor] != 0;
    const auto shard = static_cast<size_t>(alone ? coord_.tp : coord_.tp / placement.tp_copies);
    const auto parts = static_cast<size_t>(layout_.dp_shard);
    const size_t part = sharded ? static_cast<size_t>(coord_.dp_shard) : 0;
    const size_t slot = (tensor * static_cast<size_t>(layout_.tp) + shard) * parts + part;
    const double hash = hash_of(
        gradients.subspan(static_cast<size_t>(from - first), static_cast<size_t>(to - from)));
    hashes_[2 * slot] = hash;
    hashes_[2 * slot + 1] = -hash;
  }
}

ParityResult GradientCheck::finish(Trainer& trainer, const StepResult& step) {
  trainer.sum_over_ranks(sums_);
  trainer.max_over_ranks(hashes_);
  ParityResult result;
  result.loss_rel_err = relative(step.loss, reference_.loss);
  result.grad_norm_rel_err = relative(step.grad_norm, reference_.grad_norm);
  double total = 0;
  for (const TensorPlacement& t : table_.tensors()) total += static_cast<double>(t.logical.numel());
  for (size_t i = 0; i < table_.tensors().size(); ++i) {
    const LogicalTensor& logical = table_.tensors()[i].logical;
    const auto n = static_cast<double>(logical.numel());
    const double floor = kSmallTensorFloor * reference_.grad_norm * std::sqrt(n / total);
    double error = std::sqrt(sums_[kSums * i]) / std::max(std::sqrt(sums_[kSums * i + 1]), floor);
    if (sums_[kSums * i + 2] != n)
      error = std::numeric_limits<double>::infinity();  // not counted exactly once
    if (!(error <= result.max_grad_rel_err)) {
      result.max_grad_rel_err = error;
      result.worst_tensor = logical.name;
    }
  }
  for (size_t i = 0; i + 1 < hashes_.size(); i += 2) {
    if (hashes_[i] != kNobody && hashes_[i] != -hashes_[i + 1]) result.copies_equal = false;
  }
  return result;
}

}  // namespace meshwright
