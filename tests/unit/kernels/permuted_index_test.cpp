// SPDX-License-Identifier: Apache-2.0
#include "kernels/random/permuted_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace meshwright::kernels {
namespace {

TEST(PermutedIndex, IsABijectionOfEveryRange) {
  for (const std::uint64_t n : {1, 2, 3, 4, 5, 16, 17, 255, 256, 257, 10007}) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
      std::vector<bool> seen(n, false);
      for (std::uint64_t i = 0; i < n; ++i) {
        const std::uint64_t to = permuted_index(i, n, seed);
        ASSERT_LT(to, n);
        ASSERT_FALSE(seen[to]) << "n " << n << " seed " << seed << " index " << i;
        seen[to] = true;
      }
    }
  }
}

TEST(PermutedIndex, SeedsGiveUnrelatedOrders) {
  constexpr std::uint64_t kCount = 10000;
  std::uint64_t fixed_points = 0;
  std::uint64_t agreements = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    fixed_points += permuted_index(i, kCount, 7) == i ? 1 : 0;
    agreements += permuted_index(i, kCount, 7) == permuted_index(i, kCount, 8) ? 1 : 0;
  }
  // Both are Poisson with mean 1 for random permutations: 12 has probability below 1e-9.
  EXPECT_LT(fixed_points, 12U);
  EXPECT_LT(agreements, 12U);
}

TEST(PermutedIndex, FirstTargetIsUniformOverSeeds) {
  constexpr std::uint64_t kSeeds = 70000;
  std::array<int, 7> count{};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) ++count[permuted_index(0, 7, seed)];
  // 10000 expected with standard deviation 93: five of them.
  for (const int c : count) EXPECT_NEAR(c, 10000, 465);
}

TEST(PermutedIndex, LargeRangesStayInside) {
  const std::uint64_t n = (std::uint64_t{1} << 62U) - 5;
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_LT(permuted_index(n - 1 - i, n, 3), n);
}

TEST(PermutedIndexDeathTest, IndexOutsideAborts) {
  EXPECT_DEATH((void)permuted_index(5, 5, 0), "index 5 must be below n 5");
  EXPECT_DEATH((void)permuted_index(0, 0, 0), "n 0");
}

}  // namespace
}  // namespace meshwright::kernels
