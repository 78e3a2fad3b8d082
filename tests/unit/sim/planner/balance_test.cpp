// SPDX-License-Identifier: Apache-2.0
#include "sim/planner/balance.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

double slowest(const std::vector<double>& blocks, const std::vector<int>& stages) {
  double worst = 0;
  size_t block = 1;
  for (size_t p = 0; p < stages.size(); ++p) {
    double sum = (p == 0 ? blocks.front() : 0) + (p + 1 == stages.size() ? blocks.back() : 0);
    for (int i = 0; i < stages[p]; ++i) sum += blocks[block++];
    worst = std::max(worst, sum);
  }
  return worst;
}

/// The slowest part of the best split, by trying all.
double brute_force(const std::vector<double>& blocks, std::vector<int>& stages, int parts) {
  const int layers = static_cast<int>(blocks.size()) - 2;
  const int used = std::accumulate(stages.begin(), stages.end(), 0);
  if (static_cast<int>(stages.size()) == parts - 1) {
    stages.push_back(layers - used);
    const double result = slowest(blocks, stages);
    stages.pop_back();
    return result;
  }
  double best = 1e300;
  const int rest = parts - 1 - static_cast<int>(stages.size());
  for (int n = 1; used + n + rest <= layers; ++n) {
    stages.push_back(n);
    best = std::min(best, brute_force(blocks, stages, parts));
    stages.pop_back();
  }
  return best;
}

TEST(Balance, EqualLayersSplitEvenly) {
  EXPECT_EQ(balance_stages({0, 1, 1, 1, 1, 1, 1, 1, 1, 0}, 4), (std::vector{2, 2, 2, 2}));
}

// A head of two layers' cost: the last stage has fewer layers (LESSONS of Megatron users: the last
// stage is the bottleneck of large vocabularies).
TEST(Balance, AHeavyHeadTakesLayersFromTheLastStage) {
  std::vector<double> blocks(18, 1.0);
  blocks.front() = 0;
  blocks.back() = 2;
  const std::vector<int> stages = balance_stages(blocks, 4);
  EXPECT_EQ(slowest(blocks, stages), 5);
  EXPECT_LE(stages.back(), 3);
}

TEST(Balance, NoContiguousSplitIsFaster) {
  EXPECT_TRUE(rc::check("against all splits", [] {
    const int layers = *rc::gen::inRange(1, 10);
    const int parts = *rc::gen::inRange(1, layers + 1);
    std::vector<double> blocks;
    for (int i = 0; i < layers + 2; ++i) blocks.push_back(*rc::gen::inRange(0, 20));
    const std::vector<int> stages = balance_stages(blocks, parts);
    RC_ASSERT(static_cast<int>(stages.size()) == parts);
    RC_ASSERT(std::accumulate(stages.begin(), stages.end(), 0) == layers);
    RC_ASSERT(*std::min_element(stages.begin(), stages.end()) >= 1);
    std::vector<int> scratch;
    RC_ASSERT(slowest(blocks, stages) == brute_force(blocks, scratch, parts));
  }));
}

}  // namespace
}  // namespace meshwright
