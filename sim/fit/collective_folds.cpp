// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/collective_folds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace meshwright {
namespace {

using CollectiveGroupKey = std::tuple<std::string, int, CommOp>;

CollectiveGroupKey collective_group_key(const CollectiveRow& r) {
  return {r.device, r.group.num_ranks, r.op};
}

/// Interpolated; `sorted` is not empty.
double quantile_between(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

std::pair<CollectiveRowRefs, CollectiveRowRefs> split_groups(const CollectiveRowRefs& rows,
                                                             size_t fold) {
  std::map<CollectiveGroupKey, size_t> order;
  for (const CollectiveRow* r : rows) order.emplace(collective_group_key(*r), 0);
  size_t next = 0;
  for (auto& [key, index] : order) index = next++;
  std::pair<CollectiveRowRefs, CollectiveRowRefs> parts;
  for (const CollectiveRow* r : rows) {
    const bool left_out = order[collective_group_key(*r)] % kCollectiveFolds == fold;
    (left_out ? parts.second : parts.first).push_back(r);
  }
  return parts;
}

size_t count_groups(const CollectiveRowRefs& rows) {
  std::set<CollectiveGroupKey> keys;
  for (const CollectiveRow* r : rows) keys.insert(collective_group_key(*r));
  return keys.size();
}

HeldOut held_out_accuracy(size_t groups, const std::vector<double>& ratios) {
  if (ratios.empty()) return {};
  std::vector<double> errors, signed_errors;
  for (const double ratio : ratios) {
    errors.push_back(std::abs(ratio - 1));
    signed_errors.push_back(ratio - 1);
  }
  std::sort(errors.begin(), errors.end());
  std::sort(signed_errors.begin(), signed_errors.end());
  return {.rows = ratios.size(),
          .groups = groups,
          .median = quantile_between(errors, 0.5),
          .p90 = quantile_between(errors, 0.9),
          .bias = quantile_between(signed_errors, 0.5)};
}

std::pair<double, double> measured_interval(const std::vector<double>& ratios) {
  if (ratios.empty()) return {1, 1};
  std::vector<double> measured;
  for (const double ratio : ratios) measured.push_back(1 / ratio);
  std::sort(measured.begin(), measured.end());
  return {std::min(1.0, quantile_between(measured, 0.1)),
          std::max(1.0, quantile_between(measured, 0.9))};
}

std::vector<std::string> described_groups(const CollectiveRowRefs& rows) {
  std::map<std::string, std::set<std::string>> groups;
  for (const CollectiveRow* r : rows) {
    groups[r->source + ", " + r->device].insert(std::string(to_string(r->op)) + " " +
                                                std::to_string(r->group.num_ranks));
  }
  std::vector<std::string> out;
  for (const auto& [device, ops] : groups) {
    std::string line = device + ":";
    for (const std::string& op : ops) line += (line.back() == ':' ? " " : ", ") + op;
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace meshwright
