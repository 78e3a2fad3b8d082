// Fits positive constants of a time model to measurements: least squares on log(predicted /
// measured).
//
// Feeds: `meshwright fit` and the constants in models/fits. Levenberg-Marquardt in the logarithm of
// each constant, with bounds and the soft-L1 loss 2 s^2 (sqrt(1 + (r/s)^2) - 1), so that outliers
// of size beyond `scale` pull with a constant force (Triggs et al. 2000; weights by iterated
// reweighting). Deterministic.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace meshwright {

struct FitParameter {
  std::string name;
  double start = 1;
  double low = 1e-3;  ///< > 0: constants are fitted in log space.
  double high = 1e3;
};

struct FitOptions {
  double scale = 0.07;  ///< Residual at which the loss turns from square to linear.
  int max_iterations = 60;
  double tolerance = 1e-6;  ///< Relative decrease of the cost at which the fit ends.
};

struct FitResult {
  std::vector<double> values;  ///< One per parameter, inside its bounds.
  double cost = 0;             ///< Mean loss per residual.
  int iterations = 0;
  /// Relative standard error of each constant from the Jacobian; infinity where the data do not fix
  /// it. A constant on a bound is not identified.
  std::vector<double> relative_error;
};

/// Writes one residual log(predicted / measured) per measurement for the given constants.
using Residuals = std::function<void(std::span<const double> values, std::span<double> residuals)>;

[[nodiscard]] FitResult fit_log(const std::vector<FitParameter>& parameters,
                                size_t num_residuals,
                                const Residuals& residuals,
                                const FitOptions& options = {});

}  // namespace meshwright
