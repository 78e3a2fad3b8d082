// Which samples a rank reads in which step and micro-batch.
//
// One global counter numbers all samples of a run. In step t, micro-batch j of data-parallel index
// d holds
//   g = t * global_batch + (j * dp + d) * micro_batch + i,   i in [0, micro_batch)
// so a step is the same set of samples in every layout, and a run resumes at any step. Sample g is
// number g mod n of epoch g / n, shuffled anew in each epoch without a table
// (kernels/random/permuted_index.h).
#pragma once

#include <cstdint>
#include <vector>

#include "exec/data/sample_source.h"
#include "sim/plan/plan.h"

namespace meshwright {

/// Reads micro-batches of one rank. Not thread-safe. `source` must outlive it.
class BatchReader {
 public:
  BatchReader(const SampleSource& source, const Plan& plan, int dp_index);

  /// ids, labels [micro_batch * seq_len]; nullptr skips one.
  void read(int64_t step, int micro_batch, int64_t* ids, int64_t* labels);

  /// Global number of the first sample of a micro-batch; its other samples follow.
  [[nodiscard]] int64_t first_sample(int64_t step, int micro_batch) const {
    return step * global_batch_ + (micro_batch * dp_ + dp_index_) * micro_batch_;
  }

  /// Labels that count in the loss: in the whole step, and in this data-parallel index's part of
  /// it. Reads the labels of the global batch when the source has a mask.
  struct TokenCounts {
    int64_t global = 0;
    int64_t own = 0;
  };
  [[nodiscard]] TokenCounts count_tokens(int64_t step);

 private:
  /// Index in the source of global sample number g.
  [[nodiscard]] int64_t sample_index(int64_t g) const;

  const SampleSource& source_;
  int64_t seq_len_;
  int64_t global_batch_;
  int64_t micro_batch_;
  int64_t dp_;
  int64_t dp_index_;
  uint64_t seed_;
  std::vector<int64_t> ids_;  ///< One sample, for the side that a caller skips.
  std::vector<int64_t> labels_;
};

}  // namespace meshwright
