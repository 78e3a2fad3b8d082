// GradientCheck: one step's gradients on this rank against the one-rank reference, tensor by
// tensor.
//
// Reads: gradients through TrainerOptions::on_gradients. Each rank compares the elements that it
// counts (PlacementTable), so that every logical element is compared exactly once over the job: an
// element that nobody or several ranks count is an error too. Feeds: the verify command.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/runtime/trainer.h"
#include "sim/parity/parity.h"
#include "sim/schedule/placement.h"

namespace meshwright {

/// What the one-rank run gave: loss, norm, and each logical tensor's whole gradient in row-major
/// order.
struct ParityReference {
  double loss = 0;
  double grad_norm = 0;
  std::vector<std::vector<float>> gradients;  ///< By index in PlacementTable::tensors().
};

/// Runs the reference: one step of `plan` (of one rank) on `samples`.
[[nodiscard]] ParityReference run_reference(const Plan& plan, const SampleSource& samples);

class GradientCheck {
 public:
  GradientCheck(const Plan& plan,
                const PlacementTable& table,
                const RankPlacement& placement,
                int rank,
                const ParityReference& reference);

  /// To be called from TrainerOptions::on_gradients.
  void add(int bucket, int64_t first, std::span<const float> gradients);

  /// Combines all ranks' sums; every rank of the trainer's job calls it and gets the same answer.
  [[nodiscard]] ParityResult finish(Trainer& trainer, const StepResult& step);

 private:
  const PlacementTable& table_;
  const RankPlacement& placement_;
  const ParityReference& reference_;
  int rank_;
  Layout layout_;
  MeshCoord coord_;
  // Per tensor: squared difference, squared reference, elements counted.
  std::vector<double> sums_;
  /// Per tensor: its copies on other tp ranks lie elsewhere in their buckets, so that the parts
  /// over which ZeRO shards it are other elements.
  std::vector<char> parts_differ_;
  // Per (tensor, tp shard, dp_shard part): a hash of the bits this rank holds, and its negative,
  // for max and min.
  std::vector<double> hashes_;
};

}  // namespace meshwright
