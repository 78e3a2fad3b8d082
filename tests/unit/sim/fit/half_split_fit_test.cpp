// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/half_split_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/unit/sim/fit/synthetic.h"

namespace meshwright {
namespace {

TEST(HalfSplitFit, HalvesAreEvenAndOfTheIdAlone) {
  int held_out = 0;
  for (int i = 0; i < 1000; ++i) held_out += is_held_out("h100 bf16 " + std::to_string(i)) ? 1 : 0;
  EXPECT_NEAR(held_out, 500, 50);  // three standard deviations of a fair coin
  EXPECT_EQ(is_held_out("a"), is_held_out("a"));
}

TEST(HalfSplitFit, AccuracyByHand) {
  const std::vector<double> measured(10, 1.0);
  const std::vector<double> predicted{0.5, 0.8, 0.9, 1.0, 1.0, 1.0, 1.1, 1.25, 1.6, 2.0};
  const HeldOutAccuracy a = accuracy_of(predicted, measured);
  EXPECT_EQ(a.rows, 10);
  // |error| sorted: 0 0 0 .1 .1 .2 .25 .5 .6 1; nearest rank 5 of 10 and 9 of 10.
  EXPECT_NEAR(a.median, 0.1, 1e-12);
  EXPECT_NEAR(a.p90, 0.6, 1e-12);
  EXPECT_NEAR(a.bias, 0.0, 1e-12);
  EXPECT_DOUBLE_EQ(a.ratio_low, 1 / 2.0);  // measured / predicted
  EXPECT_DOUBLE_EQ(a.ratio_high, 1 / 0.8);
}

TEST(HalfSplitFit, FindsTheDiscreteConstantAndJudgesOnTheOtherHalf) {
  // t = start + ceil(i / block) cost, block = 32 among powers of two.
  constexpr double kStart = 5, kCost = 2, kBlock = 32, kNoise = 0.05;
  testing::Noise noise;
  HalfSplitProblem p{.parameters = {{.name = "start", .start = 1, .low = 0.1, .high = 100},
                                    {.name = "cost", .start = 1, .low = 0.1, .high = 100}},
                     .choices = {{8}, {16}, {32}, {64}}};
  for (int i = 0; i < 400; ++i) {
    p.measured.push_back((kStart + std::ceil((i + 1) / kBlock) * kCost) *
                         std::exp(kNoise * noise.next()));
    p.held_out.push_back(is_held_out(std::to_string(i)));
  }
  p.predict = [](auto values, auto choice, auto rows, auto predicted) {
    for (size_t j = 0; j < rows.size(); ++j) {
      const auto i = static_cast<double>(rows[j]);
      predicted[j] = values[0] + std::ceil((i + 1) / choice[0]) * values[1];
    }
  };
  const HalfSplitFit fit = fit_half_split(p);
  EXPECT_EQ(fit.choice, std::vector<double>{kBlock});
  EXPECT_NEAR(fit.values[0], kStart, 0.02 * kStart);
  EXPECT_NEAR(fit.values[1], kCost, 0.02 * kCost);
  // Uniform noise of +-5 %: median |error| 2.5 %, p90 4.5 %, 80 % interval +-4 %.
  EXPECT_NEAR(fit.held_out.median, 0.025, 0.006);
  EXPECT_NEAR(fit.held_out.p90, 0.045, 0.006);
  EXPECT_NEAR(fit.held_out.ratio_low, 0.96, 0.01);
  EXPECT_NEAR(fit.held_out.ratio_high, 1.04, 0.01);
}

}  // namespace
}  // namespace meshwright
