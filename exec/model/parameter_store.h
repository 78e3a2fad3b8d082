// ParameterStore: the weights, gradients and Adam moments of one rank, as flat FP32 buckets.
//
// ZeRO-2 keeps of a bucket's gradient the rank's own range, and the whole only from a block's
// backward to the end of its reduction; ZeRO-3 does the same with weights, which are whole from
// their gather to their release.
//
// Reads: the PlacementTable (which shard of which tensor lies where). Feeds: the operators
// (matrices that are views of a bucket), gradient synchronisation and the optimizer (whole buckets:
// one collective, one loop, no copy). Initial values depend on seed, tensor name and global element
// index only, so every layout starts from the same model and no rank ever holds a whole tensor that
// it only needs a shard of.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/schedule/placement.h"

namespace meshwright {

/// What an operator reads as one matrix, and where its gradient is added; undefined while the
/// bucket is not whole.
struct ParamView {
  at::Tensor weight;    ///< [rows, cols], a view of the bucket.
  at::Tensor weight_t;  ///< [cols, rows], the same memory.
  at::Tensor grad;      ///< [rows, cols].
  int bucket = -1;
};

/// One flat bucket. Padding beyond numel is zero and stays zero.
struct BucketTensors {
  at::Tensor params;      ///< [padded_numel]; of a sharded bucket undefined while it is not whole.
  at::Tensor grads;       ///< [padded_numel]; the same.
  at::Tensor own_params;  ///< [owned.size()]; part of params where those are always there.
  at::Tensor own_grads;   ///< [owned.size()], summed over replicas; the same.
  at::Tensor exp_avg;     ///< [updated.size()].
  at::Tensor exp_avg_sq;  ///< [updated.size()].
  ShardRange owned;       ///< PlacementTable::owned_range(): this rank's part in the gradient norm.
  ShardRange updated;     ///< What this rank's optimizer updates: owned under ZeRO, otherwise all.
};

/// All buckets of one rank. Not thread-safe.
class ParameterStore {
 public:
  /// Allocates, zeroes, and fills the weights: normal with standard deviation 0.02, the two
  /// projections that end in the residual stream 0.02 / sqrt(2 * num_layers) (GPT-2), norms 1,
  /// biases 0.
  ParameterStore(const Plan& plan, int rank);

  [[nodiscard]] const PlacementTable& table() const { return table_; }
  [[nodiscard]] const RankPlacement& placement() const { return placement_; }
  [[nodiscard]] int num_buckets() const { return static_cast<int>(buckets_.size()); }
  [[nodiscard]] BucketTensors& bucket(int i) { return buckets_[static_cast<size_t>(i)]; }

  /// The matrix that `slot` of `block` reads. A tied head on the embedding's stage reads the
  /// embedding's table.
  [[nodiscard]] const ParamView& view(int block, ParamSlot slot) const;

  /// view(block, slot).grad, to be added to. Aborts when the bucket's gradients have left for their
  /// reduction: an addition would then be lost or race with it.
  [[nodiscard]] const at::Tensor& grad(int block, ParamSlot slot) const;
  void close_gradients(int bucket) { closed_[static_cast<size_t>(bucket)] = true; }

  /// Zeroes all gradients and opens them again.
  void start_step();

  /// ZeRO-3: room for the whole weights, of which this rank's own are there.
  void make_whole(int bucket);
  void release(int bucket);
  [[nodiscard]] bool shards_weights(int bucket) const;
  /// ZeRO-2: before the backward of a block, a whole gradient of zeros for each of its buckets that
  /// has none.
  void open_gradients(int block);
  /// Adds this rank's part of a reduced gradient to what it keeps, and drops the whole.
  void keep_own_gradient(int bucket);
  [[nodiscard]] bool shards_gradient(int bucket) const;

  /// What the optimizer updates of a bucket, and by which gradient: `updated`.
  [[nodiscard]] at::Tensor updated_params(int bucket) const;
  [[nodiscard]] at::Tensor updated_grads(int bucket) const;

  [[nodiscard]] int64_t weight_bytes() const;
  [[nodiscard]] int64_t gradient_bytes() const;
  [[nodiscard]] int64_t optimizer_bytes() const;

 private:
  void fill(const Bucket& bucket,
            const at::Tensor& params,
            uint64_t seed,
            int64_t num_layers) const;
  /// A matrix of a bucket, and who reads it.
  struct Use {
    int block = 0;
    ParamSlot slot = ParamSlot::kNone;
    PackedParam param;
  };
  void list_uses(const Plan& plan, int rank);
  void view_weights(int bucket);
  void view_gradients(int bucket);

  int zero_stage_;
  PlacementTable table_;
  RankPlacement placement_;
  std::vector<BucketTensors> buckets_;
  std::vector<std::vector<Use>> uses_;  ///< Per bucket.
  std::vector<bool> closed_;
  /// Per block of the model; those of other ranks are empty.
  std::vector<std::array<ParamView, kNumParamSlots>> views_;
};

}  // namespace meshwright
