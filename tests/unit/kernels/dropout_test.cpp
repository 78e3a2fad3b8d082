// SPDX-License-Identifier: Apache-2.0
#include "kernels/dropout/dropout.h"

#include <gtest/gtest.h>

#include <vector>

namespace meshwright::kernels {
namespace {

constexpr std::uint64_t kSeed = 7, kSite = 0x1234567890ABCDEFU;

std::vector<std::uint8_t> mask_of(std::int64_t n,
                                  std::uint64_t first,
                                  std::uint64_t site,
                                  double p) {
  std::vector<float> x(static_cast<std::size_t>(n), 1.0F);
  std::vector<std::uint8_t> mask(x.size());
  dropout_forward(x.data(), mask.data(), n, first, kSeed, site, p);
  return mask;
}

TEST(Dropout, AShardsMaskIsTheSliceOfTheWhole) {
  const auto whole = mask_of(1000, 0, kSite, 0.3);
  for (const std::int64_t first : {1, 4, 333}) {
    const auto shard = mask_of(100, static_cast<std::uint64_t>(first), kSite, 0.3);
    EXPECT_EQ(shard, std::vector<std::uint8_t>(whole.begin() + first, whole.begin() + first + 100));
  }
  EXPECT_NE(mask_of(1000, 0, kSite + 1, 0.3), whole);
}

// Binomial: 10^6 draws of p = 0.1 have a standard deviation of 300.
TEST(Dropout, DropsItsShareAndScalesTheRest) {
  constexpr std::int64_t kElements = 1'000'000;
  std::vector<float> x(kElements, 2.0F);
  std::vector<std::uint8_t> mask(x.size());
  dropout_forward(x.data(), mask.data(), kElements, 0, kSeed, kSite, 0.1);
  std::int64_t dropped = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    dropped += mask[i] == 0 ? 1 : 0;
    ASSERT_FLOAT_EQ(x[i], mask[i] == 0 ? 0.0F : 2.0F / 0.9F);
  }
  EXPECT_NEAR(static_cast<double>(dropped), 1e5, 5 * 300);
}

TEST(Dropout, BackwardIsTheSameMask) {
  const std::vector<std::uint8_t> mask = {1, 0, 1};
  const std::vector<float> dy = {1.0F, 2.0F, -3.0F};
  std::vector<float> dx(3, 9.0F);
  dropout_backward(dy.data(), mask.data(), dx.data(), 3, 0.5);
  EXPECT_EQ(dx, (std::vector<float>{2.0F, 0.0F, -6.0F}));
}

}  // namespace
}  // namespace meshwright::kernels
