// A straight line through timings: seconds = intercept + x * slope.
#pragma once

#include <span>

namespace meshwright {

struct Timing {
  double x = 0;        ///< Bytes.
  double seconds = 0;  ///< > 0.
};

struct Line {
  double intercept_s = 0;  ///< >= 0.
  double slope = 0;        ///< Seconds per unit of x, > 0.
};

/// Least squares of relative errors, so that small messages count as much as large ones. A negative
/// intercept or slope has no meaning for a duration: that term is dropped and the other fitted
/// alone. Needs at least one timing with x > 0.
[[nodiscard]] Line fit_line(std::span<const Timing> timings);

}  // namespace meshwright
