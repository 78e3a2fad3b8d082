// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding/embedding.h"

#include <gtest/gtest.h>

#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kVocab = 7;
const std::vector<std::int64_t> kIds = {0, 6, 3, 3, 5, 0, 2, 3};
const auto kTokens = static_cast<std::int64_t>(kIds.size());

class Embedding : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Columns, Embedding, ::testing::ValuesIn(kColumnCounts));

TEST_P(Embedding, ShardsSumToTheLookUp) {
  const std::int64_t cols = GetParam();
  const auto table = random_floats(kVocab * cols, 1);
  std::vector<float> sum(at(kTokens * cols), 0.0F);
  for (const auto& [begin, end] : {std::pair{0, 3}, {3, 3}, {3, 6}, {6, 7}}) {
    std::vector<float> out(sum.size(), 99.0F);
    embedding_forward(
        table.data() + begin * cols, kIds.data(), begin, end - begin, out.data(), kTokens, cols);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += out[i];
  }
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t j = 0; j < cols; ++j) {
      ASSERT_EQ(sum[at(token * cols + j)], table[at(kIds[at(token)] * cols + j)]);
    }
  }
}

TEST_P(Embedding, BackwardAddsEveryOccurrenceOfAnOwnedId) {
  const std::int64_t cols = GetParam();
  const auto dout = random_floats(kTokens * cols, 2);
  constexpr std::int64_t kBegin = 2;
  constexpr std::int64_t kShardRows = 3;
  std::vector<float> dtable(at(kShardRows * cols), 0.5F);
  std::vector<double> expected(dtable.size(), 0.5);
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t row = 0; row < kShardRows; ++row) {
      if (kIds[at(token)] != kBegin + row) continue;
      for (std::int64_t j = 0; j < cols; ++j) {
        expected[at(row * cols + j)] += static_cast<double>(dout[at(token * cols + j)]);
      }
    }
  }
  embedding_backward(dout.data(), kIds.data(), kBegin, kShardRows, dtable.data(), kTokens, cols);
  expect_close(dtable, expected, 2e-7);
}

TEST(EmbeddingEdge, IdsOutsideTheVocabularyGiveZeros) {
  const std::vector<float> table(4, 1.0F);
  const std::vector<std::int64_t> ids = {-1, 2, 1};
  std::vector<float> out(6, 9.0F);
  embedding_forward(table.data(), ids.data(), 0, 2, out.data(), 3, 2);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0, 0, 1, 1}));
}

}  // namespace
}  // namespace meshwright::kernels
