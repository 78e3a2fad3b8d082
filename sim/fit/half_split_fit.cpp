// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/half_split_fit.h"

#include <algorithm>
#include <cmath>

#include "sim/core/check.h"
#include "sim/core/hash.h"
#include "sim/core/quantile.h"

namespace meshwright {
namespace {

constexpr int kCoarseIterations = 8;
constexpr size_t kCoarseStride = 2;  // of the rows
constexpr size_t kRefined = 3;       // of the coarse fits
constexpr int kKicks = 4;            // restarts beside the best values found
constexpr double kKickSize = 0.2;    // in log space

struct SplitCandidate {
  double cost = 0;
  std::vector<double> choice;
  std::vector<double> values;
};

FitResult fit_rows(const HalfSplitProblem& p,
                   const SplitCandidate& from,
                   const std::vector<size_t>& rows,
                   const FitOptions& options) {
  std::vector<FitParameter> parameters = p.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].start = from.values[i];
  const Residuals residuals = [&](std::span<const double> values, std::span<double> out) {
    p.predict(values, from.choice, rows, out);
    for (size_t i = 0; i < rows.size(); ++i) out[i] = std::log(out[i] / p.measured[rows[i]]);
  };
  return fit_log(parameters, rows.size(), residuals, options);
}

/// A choice of the best tile has kinks, on which the fitter comes to rest: it starts again from
/// beside its best values, and keeps what is better.
void refine(const HalfSplitProblem& p, const std::vector<size_t>& rows, SplitCandidate& best) {
  FitResult fit = fit_rows(p, best, rows, {});
  best.cost = fit.cost;
  best.values = fit.values;
  for (int kick = 1; kick <= kKicks; ++kick) {
    SplitCandidate beside = best;
    for (size_t i = 0; i < beside.values.size(); ++i) {
      // Golden-ratio multiples: a fixed sequence that fills [-1, 1] evenly.
      const double turn = 0.618033988749895 * static_cast<double>(i + 1) * kick;
      beside.values[i] *= std::exp(kKickSize * (2 * (turn - std::floor(turn)) - 1));
    }
    fit = fit_rows(p, beside, rows, {});
    if (fit.cost >= best.cost) continue;
    best.cost = fit.cost;
    best.values = fit.values;
  }
}

std::vector<SplitCandidate> coarse_fits(const HalfSplitProblem& p,
                                        const std::vector<size_t>& half) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < half.size(); i += kCoarseStride) rows.push_back(half[i]);
  std::vector<double> start;
  for (const FitParameter& x : p.parameters) start.push_back(x.start);
  std::vector<SplitCandidate> found;
  for (const std::vector<double>& choice : p.choices) {
    SplitCandidate c{.choice = choice, .values = start};
    const FitResult fit = fit_rows(p, c, rows, {.max_iterations = kCoarseIterations});
    c.cost = fit.cost;
    c.values = fit.values;
    found.push_back(std::move(c));
  }
  std::stable_sort(
      found.begin(), found.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
  found.resize(std::min(found.size(), kRefined));
  return found;
}

}  // namespace

bool is_held_out(std::string_view id) { return ((fnv1a(id) >> 7) & 1) == 0; }

HeldOutAccuracy accuracy_of(std::span<const double> predicted, std::span<const double> measured) {
  MW_CHECK(!predicted.empty() && predicted.size() == measured.size());
  std::vector<double> error, magnitude, ratio;
  for (size_t i = 0; i < predicted.size(); ++i) {
    error.push_back(predicted[i] / measured[i] - 1);
    magnitude.push_back(std::abs(error.back()));
    ratio.push_back(measured[i] / predicted[i]);
  }
  for (std::vector<double>* x : {&error, &magnitude, &ratio}) std::sort(x->begin(), x->end());
  return {.rows = static_cast<int64_t>(error.size()),
          .median = nearest_rank_quantile(magnitude, 0.5),
          .p90 = nearest_rank_quantile(magnitude, 0.9),
          .bias = nearest_rank_quantile(error, 0.5),
          .ratio_low = nearest_rank_quantile(ratio, 0.1),
          .ratio_high = nearest_rank_quantile(ratio, 0.9)};
}

HalfSplitFit fit_half_split(const HalfSplitProblem& p) {
  std::vector<size_t> all, half, other;
  for (size_t i = 0; i < p.measured.size(); ++i) {
    all.push_back(i);
    (p.held_out[i] ? other : half).push_back(i);
  }
  MW_CHECK(!half.empty() && !other.empty());

  SplitCandidate best{.cost = INFINITY};
  for (SplitCandidate& c : coarse_fits(p, half)) {
    refine(p, half, c);
    if (c.cost < best.cost) best = c;
  }
  std::vector<double> predicted(other.size()), measured;
  p.predict(best.values, best.choice, other, predicted);
  for (const size_t i : other) measured.push_back(p.measured[i]);
  const HeldOutAccuracy held_out = accuracy_of(predicted, measured);
  refine(p, all, best);
  return {.values = best.values, .choice = best.choice, .held_out = held_out};
}

}  // namespace meshwright
