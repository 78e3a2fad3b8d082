// Fits a model to one half of the rows, judges it on the other, then fits it to all of them.
//
// Feeds: the fits of the operator models. The coarse search over discrete constants is short; the
// best few go on. Deterministic.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/cost/operators/operator_fits.h"
#include "sim/fit/log_fit.h"

namespace meshwright {

/// Writes the prediction of `rows` with these continuous values and this discrete choice.
using PredictRows = std::function<void(std::span<const double> values,
                                       std::span<const double> choice,
                                       std::span<const size_t> rows,
                                       std::span<double> predicted)>;

struct HalfSplitProblem {
  std::vector<FitParameter> parameters;
  /// Values of the discrete constants, to be tried one after another; one empty entry without any.
  std::vector<std::vector<double>> choices{{}};
  std::vector<double> measured;
  std::vector<bool> held_out;  ///< By row; see is_held_out.
  PredictRows predict;
};

struct HalfSplitFit {
  std::vector<double> values;
  std::vector<double> choice;
  HeldOutAccuracy held_out;
};

/// Whether the row of this id belongs to the half that judges: by a hash, whatever its neighbours.
[[nodiscard]] bool is_held_out(std::string_view id);

/// Needs at least one row in each half.
[[nodiscard]] HalfSplitFit fit_half_split(const HalfSplitProblem& problem);

[[nodiscard]] HeldOutAccuracy accuracy_of(std::span<const double> predicted,
                                          std::span<const double> measured);

}  // namespace meshwright
