// SPDX-License-Identifier: Apache-2.0
#include "kernels/random/fill_normal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>

#include "kernels/random/philox.h"
#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::uint64_t kSeed = 0x123456789ABCDEFU;
constexpr std::uint64_t kKey = 0xFEDCBA987654321U;

std::vector<float> whole(std::int64_t rows,
                         std::int64_t cols,
                         std::uint64_t seed,
                         std::uint64_t key) {
  std::vector<float> out(at(rows * cols));
  fill_normal(out.data(), rows, cols, cols, 0, 0, seed, key, 1.0F);
  return out;
}

TEST(FillNormal, AnyShardEqualsTheSlice) {
  constexpr std::int64_t kRows = 11;
  constexpr std::int64_t kCols = 13;  // odd, so that rows start in every lane of a block
  const auto full = whole(kRows, kCols, kSeed, kKey);
  for (std::int64_t row_begin = 0; row_begin < kRows; ++row_begin) {
    for (std::int64_t col_begin = 0; col_begin < kCols; ++col_begin) {
      const std::int64_t rows = kRows - row_begin;
      const std::int64_t cols = std::max<std::int64_t>(1, (kCols - col_begin) / 2);
      std::vector<float> shard(at(rows * cols));
      fill_normal(shard.data(), rows, cols, kCols, row_begin, col_begin, kSeed, kKey, 1.0F);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) {
          ASSERT_EQ(shard[at(i * cols + j)], full[at((row_begin + i) * kCols + col_begin + j)]);
        }
      }
    }
  }
}

TEST(FillNormal, IsBoxMullerOverPhilox) {
  const auto full = whole(1, 400, kSeed, kKey);
  for (std::uint32_t block = 0; block < 100; ++block) {
    const auto words = philox4x32_10({block, 0, 0x87654321, 0x0FEDCBA9}, {0x89ABCDEF, 0x01234567});
    for (std::size_t pair = 0; pair < 2; ++pair) {
      const double u = (static_cast<double>(words[2 * pair]) + 0.5) * 0x1p-32;
      const double angle =
          2.0 * std::numbers::pi * static_cast<double>(words[2 * pair + 1]) * 0x1p-32;
      const double radius = std::sqrt(-2.0 * std::log(u));
      ASSERT_NEAR(full[4 * block + 2 * pair], radius * std::cos(angle), 4e-7);
      ASSERT_NEAR(full[4 * block + 2 * pair + 1], radius * std::sin(angle), 4e-7);
    }
  }
}

TEST(FillNormal, MomentsAndTails) {
  constexpr std::int64_t kCount = 1'000'000;
  std::vector<float> x(at(kCount));
  fill_normal(x.data(), 1000, 1000, 1000, 0, 0, kSeed, kKey, 0.02F);
  double sum = 0.0;
  double sum2 = 0.0;
  double sum4 = 0.0;
  double neighbours = 0.0;
  std::int64_t beyond2 = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double z = static_cast<double>(x[i]) / 0.02;
    sum += z;
    sum2 += z * z;
    sum4 += z * z * z * z;
    if (i > 0) neighbours += z * static_cast<double>(x[i - 1]) / 0.02;
    beyond2 += std::abs(z) > 2.0 ? 1 : 0;
  }
  const double n = static_cast<double>(kCount);
  // Five standard errors each: 1, sqrt(2), sqrt(96), 1 and sqrt(p (1 - p)), over sqrt(n).
  EXPECT_NEAR(sum / n, 0.0, 5e-3);
  EXPECT_NEAR(sum2 / n, 1.0, 7.1e-3);
  EXPECT_NEAR(sum4 / n, 3.0, 4.9e-2);
  EXPECT_NEAR(neighbours / n, 0.0, 5e-3);
  EXPECT_NEAR(static_cast<double>(beyond2) / n, 0.0455003, 1.05e-3);
}

TEST(FillNormal, SeedAndTensorBothMatter) {
  const auto base = whole(1, 64, kSeed, kKey);
  for (const auto& other : {whole(1, 64, kSeed + 1, kKey),
                            whole(1, 64, kSeed, kKey + 1),
                            whole(1, 64, kSeed ^ (std::uint64_t{1} << 63U), kKey)}) {
    for (std::size_t i = 0; i < base.size(); ++i) ASSERT_NE(base[i], other[i]) << i;
  }
}

TEST(FillNormal, IndexBeyond32Bits) {
  std::vector<float> near(4);
  std::vector<float> far(4);
  fill_normal(near.data(), 1, 4, 4, 0, 0, kSeed, kKey, 1.0F);
  fill_normal(far.data(), 1, 4, 4, std::int64_t{1} << 32U, 0, kSeed, kKey, 1.0F);
  EXPECT_NE(near, far);
}

}  // namespace
}  // namespace meshwright::kernels
