// SPDX-License-Identifier: Apache-2.0
#include "sim/planner/balance.h"

#include <algorithm>
#include <limits>

namespace meshwright {
namespace {

/// The best split of the first layers into some parts, and where its last part begins.
struct BestSplit {
  double slowest = std::numeric_limits<double>::infinity();
  double squares = std::numeric_limits<double>::infinity();
  int begin = -1;
  [[nodiscard]] bool better_than(const BestSplit& other) const {
    constexpr double kTie = 1e-12;
    if (slowest < other.slowest * (1 - kTie)) return true;
    return slowest <= other.slowest * (1 + kTie) && squares < other.squares * (1 - kTie);
  }
};

}  // namespace

std::vector<int> balance_stages(const std::vector<double>& blocks, int parts) {
  const int layers = static_cast<int>(blocks.size()) - 2;
  MW_CHECK(parts >= 1 && layers >= parts, "more parts than layers");
  std::vector<double> before(static_cast<size_t>(layers) + 1);  // of the layers alone
  for (size_t i = 0; i < static_cast<size_t>(layers); ++i)
    before[i + 1] = before[i] + blocks[i + 1];
  const auto part_seconds = [&](int part, int begin, int end) {
    return before[static_cast<size_t>(end)] - before[static_cast<size_t>(begin)] +
           (part == 0 ? blocks.front() : 0) + (part == parts - 1 ? blocks.back() : 0);
  };
  const auto width = static_cast<size_t>(layers) + 1;
  std::vector<BestSplit> best(static_cast<size_t>(parts) * width);
  const auto at = [&](int part, int end) -> BestSplit& {
    return best[static_cast<size_t>(part) * width + static_cast<size_t>(end)];
  };
  for (int part = 0; part < parts; ++part) {
    for (int end = part + 1; end <= layers - (parts - 1 - part); ++end) {
      for (int begin = part; begin < end; ++begin) {
        if (part == 0 && begin > 0) break;
        const double own = part_seconds(part, begin, end);
        const BestSplit earlier =
            part == 0 ? BestSplit{.slowest = 0, .squares = 0} : at(part - 1, begin);
        const BestSplit candidate{.slowest = std::max(earlier.slowest, own),
                                  .squares = earlier.squares + own * own,
                                  .begin = begin};
        if (candidate.better_than(at(part, end))) at(part, end) = candidate;
      }
    }
  }
  std::vector<int> stages(static_cast<size_t>(parts));
  for (int part = parts - 1, end = layers; part >= 0; --part) {
    const int begin = at(part, end).begin;
    stages[static_cast<size_t>(part)] = end - begin;
    end = begin;
  }
  return stages;
}

std::vector<double> block_seconds(const Plan& plan, const StageCosts& costs) {
  std::vector<double> seconds;
  for (int b = 0; b < num_blocks(plan.model()); ++b) {
    const auto walk = [&](ActionKind kind) {
      const Action a{.kind = kind, .block_begin = b, .block_end = b + 1};
      const ListCost cost = costs.blocks(a);
      return cost.device().v;
    };
    seconds.push_back(walk(ActionKind::kForward) + walk(ActionKind::kBackward) +
                      (plan.recomputes(b) ? walk(ActionKind::kRecompute) : 0.0));
  }
  return seconds;
}

}  // namespace meshwright
