// SPDX-License-Identifier: Apache-2.0
#include "kernels/position/position.h"

#include <gtest/gtest.h>

#include <vector>

namespace meshwright::kernels {
namespace {

// Sequences of 3 tokens; a shard that begins with token 2 of a micro-batch; the table's first row
// is padding.
TEST(Position, RowsFollowTheTokensPlaceInItsSequence) {
  const PositionRows rows{.first = 2, .seq_len = 3, .offset = 1};
  const std::vector<float> table = {9, 9, 10, 11, 20, 21, 30, 31};
  std::vector<float> x(8, 1.0F);
  add_positions(x.data(), table.data(), 4, 2, rows);
  EXPECT_EQ(x, (std::vector<float>{31, 32, 11, 12, 21, 22, 31, 32}));

  const std::vector<float> dx = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> dtable(8, 100.0F);
  positions_backward(dx.data(), dtable.data(), 4, 2, rows);
  EXPECT_EQ(dtable, (std::vector<float>{100, 100, 103, 104, 105, 106, 108, 110}));
}

}  // namespace
}  // namespace meshwright::kernels
