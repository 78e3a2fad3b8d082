// GradientSync: how a bucket's gradients become whole, and the gradient norm.
//
// Reads: the placement (what is partial, tied, owned). ZeRO-0 and ZeRO-1 reduce with the same sums
// in the same order and take the norm over the same parts, so that their weights stay equal bit by
// bit.
#pragma once

#include <vector>

#include "exec/model/parameter_store.h"
#include "exec/runtime/process_groups.h"

namespace meshwright {

/// One rank's reductions. Not thread-safe.
class GradientSync {
 public:
  GradientSync(ParameterStore& params, const ProcessGroups& groups, const Plan& plan, int rank);

  void sum_copies(int bucket);
  void sum_tied(int bucket);
  void start_reduce(int bucket);
  void wait_reduce(int bucket);

  /// This rank's part of the squared global norm: each logical element of the model is in exactly
  /// one rank's part.
  [[nodiscard]] double sum_of_squares();

  /// Fault injection: the next start_reduce() reduces nothing; replicated copies all count in the
  /// norm.
  void skip_next_reduce() { skip_next_reduce_ = true; }
  void count_every_copy() { count_every_copy_ = true; }

 private:
  ParameterStore& params_;
  const ProcessGroups& groups_;
  bool counts_owned_range_;
  bool skip_next_reduce_ = false;
  bool count_every_copy_ = false;
  std::vector<Pending> pending_;
};

}  // namespace meshwright
