// Measured groups (device, ranks, operation) dealt to folds, and accuracy on the fold left out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/fit/collective_document.h"
#include "sim/fit/collective_rows.h"

namespace meshwright {

using CollectiveRowRefs = std::vector<const CollectiveRow*>;

inline constexpr size_t kCollectiveFolds = 8;

/// Rows outside `fold` and rows in it: the groups are dealt to kCollectiveFolds in the order of
/// their keys, so that a group is never in both.
[[nodiscard]] std::pair<CollectiveRowRefs, CollectiveRowRefs> split_groups(
    const CollectiveRowRefs& rows, size_t fold);

[[nodiscard]] size_t count_groups(const CollectiveRowRefs& rows);

/// Accuracy from predicted / measured of unseen rows of that many groups.
[[nodiscard]] HeldOut held_out_accuracy(size_t groups, const std::vector<double>& ratios);

/// 10th and 90th percentile of measured / predicted, around 1.
[[nodiscard]] std::pair<double, double> measured_interval(const std::vector<double>& ratios);

/// "project, device: op n, op n" per device.
[[nodiscard]] std::vector<std::string> described_groups(const CollectiveRowRefs& rows);

}  // namespace meshwright
