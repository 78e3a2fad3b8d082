// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/log_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/sim/fit/synthetic.h"

namespace meshwright {
namespace {

using ::testing::DoubleNear;
using testing::Noise;

/// t = start + work / rate over work from 1 to 1e4.
struct LineData {
  std::vector<double> work, time;

  LineData(double start, double rate, double noise, size_t n = 400) {
    Noise random;
    for (size_t i = 0; i < n; ++i) {
      work.push_back(std::exp(std::log(1e4) * static_cast<double>(i) / static_cast<double>(n)));
      time.push_back((start + work.back() / rate) * std::exp(noise * random.next()));
    }
  }
  [[nodiscard]] FitResult fit(const std::vector<FitParameter>& parameters) const {
    return fit_log(parameters, time.size(), [this](std::span<const double> c, std::span<double> r) {
      for (size_t i = 0; i < r.size(); ++i) r[i] = std::log((c[0] + work[i] / c[1]) / time[i]);
    });
  }
};

const std::vector<FitParameter> kLine{{.name = "start", .start = 1, .low = 0.1, .high = 100},
                                      {.name = "rate", .start = 1, .low = 0.1, .high = 100}};

TEST(LogFit, RecoversConstantsExactlyWithoutNoise) {
  const FitResult fit = LineData(12, 7, 0).fit(kLine);
  EXPECT_NEAR(fit.values[0], 12, 1e-4);
  EXPECT_NEAR(fit.values[1], 7, 1e-4);
  EXPECT_LT(fit.cost, 1e-10);
}

TEST(LogFit, RecoversConstantsUnderNoise) {
  const FitResult fit = LineData(12, 7, 0.1).fit(kLine);
  EXPECT_NEAR(fit.values[0], 12, 12 * 0.02);
  EXPECT_NEAR(fit.values[1], 7, 7 * 0.02);
  // Residuals are uniform on +-0.1, 400 of them: a standard error of 0.3-1 %.
  for (const double e : fit.relative_error) EXPECT_THAT(e, DoubleNear(0.006, 0.004));
}

TEST(LogFit, OutliersPullWithConstantForce) {
  LineData data(12, 7, 0.02);
  for (size_t i = 0; i < data.time.size(); i += 20) data.time[i] *= 10;  // 5 % of the rows
  const FitResult fit = data.fit(kLine);
  EXPECT_NEAR(fit.values[0], 12, 12 * 0.02);
  EXPECT_NEAR(fit.values[1], 7, 7 * 0.02);
}

TEST(LogFit, StaysInsideItsBounds) {
  std::vector<FitParameter> bounded = kLine;
  bounded[0].high = 5;  // the truth is 12
  const FitResult fit = LineData(12, 7, 0.02).fit(bounded);
  EXPECT_DOUBLE_EQ(fit.values[0], 5);
  EXPECT_GE(fit.values[1], 0.1);
  EXPECT_LE(fit.values[1], 100);
}

TEST(LogFit, AStartOutsideTheBoundsIsMovedOntoThem) {
  std::vector<FitParameter> far = kLine;
  far[0].start = 1e6;
  EXPECT_NEAR(LineData(12, 7, 0).fit(far).values[0], 12, 1e-3);
}

TEST(LogFit, ConstantThatTheDataDoNotFixSaysSo) {
  const LineData data(12, 7, 0.05);
  std::vector<FitParameter> three = kLine;
  three.push_back({.name = "unused", .start = 1, .low = 0.1, .high = 10});
  const FitResult fit = data.fit(three);
  EXPECT_LT(fit.relative_error[0], 0.05);
  EXPECT_GT(fit.relative_error[2], 10);
}

}  // namespace
}  // namespace meshwright
