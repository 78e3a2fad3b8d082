// SPDX-License-Identifier: Apache-2.0
#include "exec/calibrate/line_fit.h"

#include <Eigen/Dense>

namespace meshwright {

Line fit_line(std::span<const Timing> timings) {
  const auto n = static_cast<Eigen::Index>(timings.size());
  Eigen::MatrixXd rows(n, 2);
  for (Eigen::Index i = 0; i < n; ++i) {
    const Timing& t = timings[static_cast<size_t>(i)];
    rows(i, 0) = 1.0 / t.seconds;
    rows(i, 1) = t.x / t.seconds;
  }
  const Eigen::VectorXd ones = Eigen::VectorXd::Ones(n);
  const auto alone = [&](Eigen::Index column) {
    return rows.col(column).dot(ones) / rows.col(column).squaredNorm();
  };
  const Eigen::Vector2d both = rows.colPivHouseholderQr().solve(ones);
  constexpr double kNegligibleSlope = 1e-15;
  if (both(1) <= 0 && n > 1) return {alone(0), kNegligibleSlope};
  if (both(0) < 0 || n < 2) return {0.0, alone(1)};
  return {both(0), both(1)};
}

}  // namespace meshwright
