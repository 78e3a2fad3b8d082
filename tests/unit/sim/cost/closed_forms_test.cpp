// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/collectives/closed_forms.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::near_rel;

constexpr AlphaBeta kNode{Seconds{5e-6}, BytesPerSecond{450e9}};
constexpr AlphaBeta kNic{Seconds{2e-5}, BytesPerSecond{50e9}};
constexpr Bytes kGigabyte{1e9};

// Hand-computed: alpha 5 us, 450 GB/s, 1 GB, 8 ranks; 1 GB / 450 GB/s = 2222.2222 us.
TEST(ClosedForms, OneGigabyteOverEightRanks) {
  EXPECT_TRUE(
      near_rel(ring_all_gather(kGigabyte, 8, kNode).v, 35e-6 + 1944.4444444444445e-6, 1e-12));
  EXPECT_TRUE(
      near_rel(ring_all_reduce(kGigabyte, 8, kNode).v, 70e-6 + 3888.888888888889e-6, 1e-12));
  EXPECT_TRUE(
      near_rel(tree_all_reduce(kGigabyte, 8, kNode).v, 30e-6 + 4444.444444444444e-6, 1e-12));
  EXPECT_TRUE(near_rel(
      halving_doubling_all_reduce(kGigabyte, 8, kNode).v, 30e-6 + 3888.888888888889e-6, 1e-12));
  EXPECT_TRUE(
      near_rel(pairwise_all_to_all(kGigabyte, 8, kNode).v, 35e-6 + 1944.4444444444445e-6, 1e-12));
  EXPECT_TRUE(
      near_rel(in_switch_all_reduce(kGigabyte, 8, kNode).v, 10e-6 + 2222.222222222222e-6, 1e-12));
}

TEST(ClosedForms, TreesOfOddSizeHaveTheLevelsOfTheNextPowerOfTwo) {
  EXPECT_TRUE(near_rel(tree_all_reduce(Bytes{0}, 5, kNode).v, 30e-6, 1e-12));
  EXPECT_TRUE(near_rel(tree_all_reduce(Bytes{0}, 9, kNode).v, 40e-6, 1e-12));
}

// 4 nodes of 8: 7/8 GB each way inside, 2 x 3/4 of 1/8 GB on each NIC.
TEST(ClosedForms, HierarchicalAllReduceIsThreeStages) {
  const HierarchicalTime t = hierarchical_all_reduce(kGigabyte, 4, 8, kNode, kNic);
  EXPECT_TRUE(near_rel(t.intra.v, 2 * (35e-6 + 0.875e9 / 450e9), 1e-12));
  EXPECT_TRUE(near_rel(t.inter.v, 2 * (60e-6 + 0.75 * 0.125e9 / 50e9), 1e-12));
  EXPECT_TRUE(near_rel(t.total(0).v, t.intra.v + t.inter.v, 1e-12));
  EXPECT_TRUE(near_rel(t.total(0.9).v, t.intra.v + 0.1 * t.inter.v, 1e-12));  // intra is longer
}

TEST(ClosedForms, GroupsThatCommunicateTogetherShareTheNics) {
  const BytesPerSecond nic{50e9};
  EXPECT_EQ(nic_share(nic, 8, 1, 8).v, 400e9);
  EXPECT_EQ(nic_share(nic, 8, 8, 1).v, 50e9);  // tensor-parallel 8: eight groups of one rank a node
  EXPECT_EQ(nic_share(nic, 1, 8, 1).v, 6.25e9);
  EXPECT_EQ(nic_share(nic, 8, 1, 1).v, 50e9);  // one member uses one NIC
  EXPECT_EQ(nic_share(nic, 4, 2, 4).v, 100e9);
}

RC_GTEST_PROP(ClosedForms, AllReduceIsReduceScatterAndAllGather, ()) {
  const int n = *rc::gen::inRange(1, 1000);
  const Bytes s{*rc::gen::inRange(0, 1000000000) * 1.0};
  RC_ASSERT(ring_all_reduce(s, n, kNode).v == 2 * ring_all_gather(s, n, kNode).v);
}

TEST(ClosedForms, OneRankCostsNothing) {
  for (auto* form : {ring_all_gather,
                     ring_all_reduce,
                     tree_all_reduce,
                     halving_doubling_all_reduce,
                     pairwise_all_to_all,
                     in_switch_all_reduce}) {
    EXPECT_EQ(form(kGigabyte, 1, kNode).v, 0);
  }
  EXPECT_EQ(hierarchical_all_reduce(kGigabyte, 1, 1, kNode, kNic).total(0).v, 0);
}

}  // namespace
}  // namespace meshwright
