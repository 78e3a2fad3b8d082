// ZeroActions: what ZeRO-2 and ZeRO-3 add around each block that a rank runs.
//
// Reads: the rank's slots and buckets. Feeds: build_program(). ZeRO-3 (arXiv:1910.02054; as fully
// sharded data parallelism does it, arXiv:2304.11277): a bucket is gathered while the blocks before
// it run, at most `prefetch` blocks ahead, and dropped after its block, unless one of the next
// `prefetch` blocks reads it again. ZeRO-2: a block's gradient exists whole from its backward until
// its reduce-scatter, of which kReducesInFlight may be under way. Reductions of several blocks
// leave as one where the layout's bucket holds more than one.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "sim/schedule/pipeline/pipeline_order.h"
#include "sim/schedule/program.h"

namespace meshwright {

class ZeroActions {
 public:
  static constexpr size_t kReducesInFlight = 2;

  ZeroActions(const Plan& plan,
              const RankPlacement& placement,
              const std::vector<PipelineSlot>& slots,
              std::vector<Action>& actions);

  [[nodiscard]] bool shards_gradients() const { return zero_stage_ >= 2; }
  [[nodiscard]] bool shards_parameters() const { return zero_stage_ >= 3; }

  /// Around each block, in the order of the slots (forward ascending, backward descending).
  void before_block();
  void after_block();
  /// Before a backward writes the whole gradient of a bucket: the one before must have left.
  void before_gradient(size_t bucket);
  /// Its gradient is whole: starts its reduction, or that of all that wait once they fill a
  /// collective.
  void reduce(size_t bucket);
  /// No further gradient joins those that wait: starts their reduction.
  void flush();
  /// Ends what is under way.
  void finish();

 private:
  void add(ActionKind kind, size_t bucket) {
    actions_.push_back({.kind = kind, .bucket = static_cast<int>(bucket)});
  }
  [[nodiscard]] bool read_soon(size_t bucket) const;
  void end_oldest_reduce();

  int zero_stage_;
  int64_t fill_;  ///< Elements of a full collective.
  size_t ahead_;
  bool reshard_;
  const RankPlacement& placement_;
  std::vector<Action>& actions_;
  std::vector<std::vector<size_t>> reads_;  ///< Per block: its buckets.
  std::vector<int> visits_;                 ///< Blocks in the order in which they run.
  size_t next_ = 0;
  enum class State : char { kSharded, kGathering, kWhole };
  std::vector<State> states_;  ///< Per bucket.
  std::vector<size_t> waiting_;
  std::deque<std::vector<size_t>> reducing_;  ///< Collectives under way.
};

}  // namespace meshwright
