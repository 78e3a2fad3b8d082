// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/core/quantile.h"
#include "sim/validate/validation.h"

namespace meshwright {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

using RowRefs = std::vector<const ValidatedRow*>;

ValidationSummary summary_of(const RowRefs& rows, std::string source, std::string device) {
  ValidationSummary s{
      .source = std::move(source), .device = std::move(device), .unit = rows.front()->unit};
  std::vector<double> errors, signed_errors, predicted, measured;
  int64_t bounded = 0, inside = 0;
  for (const ValidatedRow* row : rows) {
    const double e = *row->rel_err();
    errors.push_back(std::abs(e));
    signed_errors.push_back(e);
    predicted.push_back(*row->predicted);
    measured.push_back(*row->measured);
    if (row->bound_high) {
      ++bounded;
      if (*row->measured >= row->bound_low.value_or(0) && *row->measured <= *row->bound_high)
        ++inside;
    }
  }
  s.count = static_cast<int64_t>(rows.size());
  s.median = median(errors);
  s.mean = std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size());
  std::sort(errors.begin(), errors.end());
  s.p90 = nearest_rank_quantile(errors, 0.9);
  s.bias = median(signed_errors);
  s.rank_correlation = kendall_tau(predicted, measured);
  if (bounded > 0) s.coverage = static_cast<double>(inside) / static_cast<double>(bounded);
  return s;
}

void rank_layouts(ValidationReport& report) {
  std::map<std::string, RowRefs> groups;
  for (const ValidatedRow& row : report.rows) {
    if (row.compared() && !row.rank_group.empty()) groups[row.rank_group].push_back(&row);
  }
  double tau_sum = 0, regret_sum = 0;
  int num_tau = 0, num_groups = 0;
  for (const auto& [key, rows] : groups) {
    if (rows.size() < 3) continue;
    std::vector<double> predicted, measured;
    for (const ValidatedRow* row : rows) {
      predicted.push_back(*row->predicted);
      measured.push_back(*row->measured);
    }
    if (const std::optional<double> tau = kendall_tau(predicted, measured)) {
      tau_sum += *tau;
      ++num_tau;
    }
    const auto best = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
    regret_sum +=
        measured[static_cast<size_t>(best)] / *std::min_element(measured.begin(), measured.end()) -
        1;
    ++num_groups;
  }
  if (num_tau > 0) report.layout_tau = tau_sum / num_tau;
  if (num_groups > 0) report.layout_regret = regret_sum / num_groups;
}

/// Sorts values[begin, end) and returns how many pairs were out of order.
int64_t count_inversions(std::vector<double>& values, size_t begin, size_t end) {
  if (end - begin < 2) return 0;
  const size_t middle = begin + (end - begin) / 2;
  int64_t inversions =
      count_inversions(values, begin, middle) + count_inversions(values, middle, end);
  std::vector<double> merged;
  merged.reserve(end - begin);
  size_t left = begin, right = middle;
  while (left < middle || right < end) {
    if (right == end || (left < middle && values[left] <= values[right])) {
      merged.push_back(values[left++]);
    } else {
      inversions += static_cast<int64_t>(middle - left);
      merged.push_back(values[right++]);
    }
  }
  std::copy(merged.begin(), merged.end(), values.begin() + static_cast<std::ptrdiff_t>(begin));
  return inversions;
}

/// Pairs of equal neighbours in a sorted range.
template <class Equal>
int64_t tied_pairs(size_t n, Equal&& equal) {
  int64_t pairs = 0, run = 1;
  for (size_t i = 1; i <= n; ++i) {
    if (i < n && equal(i - 1, i)) {
      ++run;
    } else {
      pairs += run * (run - 1) / 2;
      run = 1;
    }
  }
  return pairs;
}

}  // namespace

std::optional<double> ValidatedRow::rel_err() const {
  if (!predicted || !measured) return std::nullopt;
  return *predicted / *measured - 1;
}

// Knight's O(n log n) algorithm (J. Am. Stat. Assoc. 61, 1966): files hold tens of thousands of
// rows.
std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  const size_t n = a.size();
  if (n < 2 || b.size() != n) return std::nullopt;
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    return a[i] != a[j] ? a[i] < a[j] : b[i] < b[j];
  });
  const auto total = static_cast<double>(n) * static_cast<double>(n - 1) / 2;
  const auto ties_a = static_cast<double>(
      tied_pairs(n, [&](size_t i, size_t j) { return a[order[i]] == a[order[j]]; }));
  const auto ties_both = static_cast<double>(tied_pairs(n, [&](size_t i, size_t j) {
    return a[order[i]] == a[order[j]] && b[order[i]] == b[order[j]];
  }));
  std::vector<double> by_a;
  by_a.reserve(n);
  for (const size_t i : order) by_a.push_back(b[i]);
  const auto discordant = static_cast<double>(count_inversions(by_a, 0, n));
  const auto ties_b =
      static_cast<double>(tied_pairs(n, [&](size_t i, size_t j) { return by_a[i] == by_a[j]; }));
  const double concordant_minus_discordant = total - ties_a - ties_b + ties_both - 2 * discordant;
  const double norm = std::sqrt((total - ties_a) * (total - ties_b));
  if (norm == 0) return std::nullopt;
  return concordant_minus_discordant / norm;
}

void summarise(ValidationReport& report) {
  std::map<std::tuple<std::string, std::string, std::string>, RowRefs> groups;
  std::map<std::string, RowRefs> pooled;
  for (const ValidatedRow& row : report.rows) {
    if (!row.compared()) continue;
    groups[{row.source, row.device, row.unit}].push_back(&row);
    pooled[row.unit].push_back(&row);
  }
  report.summary.clear();
  for (const auto& [key, rows] : groups) {
    report.summary.push_back(summary_of(rows, std::get<0>(key), std::get<1>(key)));
  }
  for (const auto& [unit, rows] : pooled) report.summary.push_back(summary_of(rows, "all", "all"));
  rank_layouts(report);
}

}  // namespace meshwright
