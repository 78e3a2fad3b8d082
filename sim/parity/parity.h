// Layout parity: one training step in a layout equals the same step on one rank.
//
// A parity case is a plan on local ranks with a small model. The worker runs each case and the
// one-rank reference on the same synthetic samples and compares loss, gradient norm and every
// logical tensor's gradient. Feeds: verify.
//
// A gradient's error is |g - ref| / max(|ref|, 1e-3 * global norm * sqrt(n / N)) in L2 with FP64
// sums: n elements of N.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/plan/plan.h"

namespace meshwright {

inline constexpr double kParityTolerance = 1e-5;

struct ParityResult {
  double loss_rel_err = 0;
  double grad_norm_rel_err = 0;
  double max_grad_rel_err = 0;
  std::string worst_tensor;  ///< Of max_grad_rel_err.
  bool copies_equal =
      true;  ///< Every replicated parameter has bitwise equal gradients on all holders.
  /// All errors are numbers within kParityTolerance and copies are equal.
  [[nodiscard]] bool ok() const;
};

/// The built-in suite "slice": dense, grouped-query, tied and biased models in 37 layouts of 1, 2,
/// 4 and 8 ranks.
[[nodiscard]] std::vector<Plan> slice_suite();

/// `count` layouts drawn from all legal ones of the suite's models on 1 to 8 ranks.
[[nodiscard]] std::vector<Plan> random_suite(int count, uint64_t seed);

/// The plan itself when it is small enough to check here, else the same axes at reduced width and
/// degree (at most 2 each): `reduced` says which.
struct PlanCase {
  Plan plan;
  bool reduced = false;
};
[[nodiscard]] Result<PlanCase> parity_case_of(const Plan& plan);

/// The same model and workload on one rank: what a case is compared with.
[[nodiscard]] Plan reference_of(const Plan& plan);

[[nodiscard]] std::string to_json_text(const std::vector<ParityResult>& results);
[[nodiscard]] Result<std::vector<ParityResult>> parse_parity_results(std::string_view text,
                                                                     const std::string& origin);

}  // namespace meshwright
