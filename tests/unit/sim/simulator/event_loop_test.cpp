// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/event_loop.h"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

/// Ids and times of all items, in the order they finish.
std::vector<std::pair<int, double>> drain(EventLoop& loop) {
  std::vector<std::pair<int, double>> out;
  while (const auto id = loop.next()) out.emplace_back(*id, loop.now());
  return out;
}

using Finished = std::vector<std::pair<int, double>>;

TEST(EventLoop, OwnDevicesRunAtFullRate) {
  EventLoop loop(std::nullopt, 1.0);
  loop.start(0, 3, 1);
  loop.start(1, 1, 64);
  loop.start(2, 2, 1);
  EXPECT_EQ(drain(loop), (Finished{{1, 1}, {2, 2}, {0, 3}}));
}

TEST(EventLoop, ThreeItemsShareTwoCores) {
  // Rate 2/3 until the first has done 1 second of work, then each has a core.
  EventLoop loop(2, 1.0);
  for (int i = 0; i < 3; ++i) loop.start(i, i + 1, 1);
  const Finished f = drain(loop);
  ASSERT_EQ(f.size(), 3u);
  EXPECT_DOUBLE_EQ(f[0].second, 1.5);
  EXPECT_DOUBLE_EQ(f[1].second, 2.5);
  EXPECT_DOUBLE_EQ(f[2].second, 3.5);
}

TEST(EventLoop, OversubscriptionSlowsOnlyWhileRanksOutnumberCores) {
  EventLoop loop(2, 1.5);
  for (int i = 0; i < 3; ++i) loop.start(i, i + 1, 1);
  const Finished f = drain(loop);
  EXPECT_DOUBLE_EQ(f[0].second, 2.25);  // rate 2/3/1.5
  EXPECT_DOUBLE_EQ(f[1].second, 3.25);
  EXPECT_DOUBLE_EQ(f[2].second, 4.25);
}

TEST(EventLoop, ALateItemSlowsTheOthersFromThenOn) {
  EventLoop loop(1, 1.0);
  loop.start(0, 1, 1);
  loop.start(1, 4, 1);
  EXPECT_EQ(loop.next(), 0);  // at 2: each had half a core
  EXPECT_DOUBLE_EQ(loop.now(), 2);
  loop.start(2, 1, 2);  // two ranks: together three on one core; item 1 has 3 seconds left
  EXPECT_EQ(loop.next(), 2);
  EXPECT_DOUBLE_EQ(loop.now(), 5);
  EXPECT_EQ(loop.next(), 1);
  EXPECT_DOUBLE_EQ(loop.now(), 7);  // 2 seconds left, alone
  EXPECT_EQ(loop.next(), std::nullopt);
}

TEST(EventLoop, TiesFinishInTheOrderOfTheirStart) {
  EventLoop loop(std::nullopt, 1.0);
  for (const int id : {7, 3, 5}) loop.start(id, 0, 1);
  EXPECT_EQ(drain(loop), (Finished{{7, 0}, {3, 0}, {5, 0}}));
}

}  // namespace
}  // namespace meshwright
