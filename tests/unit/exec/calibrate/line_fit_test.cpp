// SPDX-License-Identifier: Apache-2.0
#include "exec/calibrate/line_fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace meshwright {
namespace {

TEST(LineFit, FindsTheLineItWasMadeFrom) {
  std::vector<Timing> timings;
  for (const double bytes : {4e3, 64e3, 1e6, 16e6}) timings.push_back({bytes, 2e-4 + bytes / 1.5e9});
  const Line line = fit_line(timings);
  EXPECT_NEAR(line.intercept_s, 2e-4, 1e-10);
  EXPECT_NEAR(1.0 / line.slope, 1.5e9, 1e3);
}

TEST(LineFit, ANegativeStartUpIsDropped) {
  const std::vector<Timing> timings = {{1e6, 0.5e-3}, {2e6, 1.5e-3}};  // a line that meets zero at 0.5 MB
  const Line line = fit_line(timings);
  EXPECT_EQ(line.intercept_s, 0.0);
  EXPECT_GT(line.slope, 0.5e-9);
  EXPECT_LT(line.slope, 0.75e-9);
}

TEST(LineFit, TimeThatFallsWithSizeIsAStartUpAlone) {
  const std::vector<Timing> timings = {{1e3, 3e-4}, {1e6, 2e-4}};
  const Line line = fit_line(timings);
  EXPECT_GT(line.intercept_s, 1.9e-4);
  EXPECT_LT(line.intercept_s, 3.1e-4);
  EXPECT_LT(line.slope * 1e6, 1e-8);
}

}  // namespace
}  // namespace meshwright
