// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/validate/validation.h"
#include "tests/unit/sim/fit/synthetic.h"

namespace meshwright {
namespace {

/// Tau-b by comparing every pair.
std::optional<double> tau_by_pairs(const std::vector<double>& a, const std::vector<double>& b) {
  double score = 0, untied_a = 0, untied_b = 0;
  const auto sign = [](double x) { return (x > 0) - (x < 0); };
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const int da = sign(a[i] - a[j]), db = sign(b[i] - b[j]);
      score += da * db;
      untied_a += da != 0 ? 1 : 0;
      untied_b += db != 0 ? 1 : 0;
    }
  }
  if (untied_a * untied_b == 0) return std::nullopt;
  return score / std::sqrt(untied_a * untied_b);
}

ValidatedRow row(double predicted, double measured, const std::string& source = "s") {
  return {
      .source = source, .device = "d", .unit = "ms", .predicted = predicted, .measured = measured};
}

TEST(KendallTau, ByHand) {
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3}, {1, 2, 3}).value(), 1);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3}, {3, 2, 1}).value(), -1);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3}, {2, 1, 3}).value(), 1.0 / 3);
  EXPECT_EQ(kendall_tau({1}, {1}), std::nullopt);
  EXPECT_EQ(kendall_tau({1, 1}, {1, 2}), std::nullopt);
}

TEST(KendallTau, EqualsEveryPairComparedWithTies) {
  testing::Noise noise;
  for (int trial = 0; trial < 200; ++trial) {
    const size_t n = 2 + static_cast<size_t>(trial) % 40;
    const double levels = 2 + trial % 9;  // few levels: many ties
    std::vector<double> a, b;
    for (size_t i = 0; i < n; ++i) {
      a.push_back(std::floor(levels * noise.next()));
      b.push_back(std::floor(levels * noise.next() + a.back() / 2));
    }
    const auto expected = tau_by_pairs(a, b);
    const auto tau = kendall_tau(a, b);
    ASSERT_EQ(tau.has_value(), expected.has_value()) << trial;
    if (!tau) continue;
    EXPECT_NEAR(*tau, *expected, 1e-12) << trial;
  }
}

TEST(Summary, QuantilesByHand) {
  ValidationReport report;
  // Errors -0.5 -0.2 -0.1 0 0.1 0.2 0.3 0.4 0.5 0.6, not in order.
  for (const double e : {0.5, -0.1, 0.2, -0.5, 0.0, 0.1, 0.4, -0.2, 0.3, 0.6}) {
    report.rows.push_back(row(1 + e, 1));
  }
  summarise(report);
  ASSERT_EQ(report.summary.size(), 2u);
  const ValidationSummary& s = report.summary.front();
  EXPECT_EQ(s.count, 10);
  // |errors| sorted: 0 .1 .1 .2 .2 .3 .4 .5 .5 .6.
  EXPECT_NEAR(s.median, 0.25, 1e-12);
  EXPECT_NEAR(s.mean, 0.29, 1e-12);
  EXPECT_NEAR(s.p90, 0.5, 1e-12);  // nearest rank: the ninth of ten
  EXPECT_NEAR(s.bias, 0.15, 1e-12);
  EXPECT_EQ(s.rank_correlation, std::nullopt);  // the measured side is constant
  EXPECT_EQ(s.coverage, std::nullopt);
  EXPECT_EQ(report.summary.back().source, "all");
}

TEST(Summary, OneRowIsItsOwnQuantile) {
  ValidationReport report{.rows = {row(3, 2)}};
  summarise(report);
  EXPECT_DOUBLE_EQ(report.summary.front().median, 0.5);
  EXPECT_DOUBLE_EQ(report.summary.front().p90, 0.5);
}

TEST(Summary, CoverageCountsBoundsIncluded) {
  ValidationReport report;
  for (const double measured : {0.9, 1.0, 1.1, 1.2}) {
    ValidatedRow r = row(1, measured);
    r.bound_low = 1.0;
    r.bound_high = 1.1;
    report.rows.push_back(r);
  }
  summarise(report);
  EXPECT_DOUBLE_EQ(report.summary.front().coverage.value(), 0.5);
}

TEST(Summary, UnitsAreNotPooledAndSkippedRowsDoNotCount) {
  ValidationReport report{.rows = {row(1, 1, "a"), row(2, 1, "b"), row(4, 1, "b")}};
  report.rows[1].unit = "GiB";
  report.rows[2].skipped = "why";
  summarise(report);
  ASSERT_EQ(report.summary.size(), 4u);  // a, b, and one pool per unit
  EXPECT_EQ(report.summary[1].source, "b");
  EXPECT_EQ(report.summary[1].count, 1);
  EXPECT_EQ(report.summary[2].unit, "GiB");
  EXPECT_EQ(report.summary[3].unit, "ms");
  EXPECT_EQ(report.summary[3].count, 1);
}

TEST(Summary, RegretOfTheLayoutThatWasPredictedBest) {
  ValidationReport report{.rows = {row(1, 12), row(2, 10), row(3, 20)}};
  for (ValidatedRow& r : report.rows) r.rank_group = "g";
  summarise(report);
  EXPECT_NEAR(report.layout_regret.value(), 0.2, 1e-12);  // 12 against 10
  EXPECT_NEAR(report.layout_tau.value(), 1.0 / 3, 1e-12);
}

}  // namespace
}  // namespace meshwright
