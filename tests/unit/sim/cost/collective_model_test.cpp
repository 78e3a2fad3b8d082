// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/collective_model.h"

#include <gtest/gtest.h>

#include "sim/cost/collectives/nodes_time.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::near_rel;

constexpr double kAlpha = 5e-6;
constexpr double kRate = 450e9;
constexpr Bytes kPayload{1e9};

/// Nodes of 8 on links without base time and at full efficiency.
ClusterSpec plain_cluster() {
  ClusterSpec c = testing::builtin_cluster("64xh100");
  c.intra_node = {
      .bandwidth = BytesPerSecond{kRate}, .efficiency = 1, .alpha = Seconds{kAlpha}, .base = {}};
  c.inter_node = {
      .bandwidth = BytesPerSecond{50e9}, .efficiency = 1, .alpha = Seconds{3 * kAlpha}, .base = {}};
  return c;
}

double time(CommOp op, Bytes payload, GroupShape shape) {
  return ring_collective_time(plain_cluster(), op, payload, shape).v;
}

// Thakur et al. 2005: (n-1) alpha + (n-1)/n S/W for all-gather and reduce-scatter, twice that for
// all-reduce.
TEST(RingCollective, FormulasInsideANode) {
  for (const int n : {2, 4, 8}) {
    const GroupShape shape{n, n};
    const double once = (n - 1) * kAlpha + (n - 1.0) / n * 1e9 / kRate;
    EXPECT_TRUE(near_rel(time(CommOp::kAllGather, kPayload, shape), once, 1e-12));
    EXPECT_TRUE(near_rel(time(CommOp::kReduceScatter, kPayload, shape), once, 1e-12));
    EXPECT_TRUE(near_rel(time(CommOp::kAllReduce, kPayload, shape), 2 * once, 1e-12));
    EXPECT_TRUE(near_rel(time(CommOp::kAllToAll, kPayload, shape), once, 1e-12));
    EXPECT_TRUE(near_rel(time(CommOp::kSendRecv, kPayload, shape), kAlpha + 1e9 / kRate, 1e-12));
  }
}

TEST(RingCollective, OverNodesTheNicsOfTheMembersCarryTheRing) {
  // 16 ranks on 2 nodes: 14 NVLink steps, 1 NIC step; 8 NICs of 50 GB/s give 400 < 450.
  EXPECT_TRUE(near_rel(time(CommOp::kAllGather, kPayload, {16, 8}),
                       14 * kAlpha + 3 * kAlpha + 15.0 / 16 * 1e9 / 400e9,
                       1e-12));
  // One rank per node: one NIC.
  EXPECT_TRUE(near_rel(time(CommOp::kAllReduce, kPayload, {4, 1}),
                       2 * (3 * 3 * kAlpha + 3.0 / 4 * 1e9 / 50e9),
                       1e-12));
  EXPECT_TRUE(near_rel(time(CommOp::kSendRecv, kPayload, {2, 1}), 3 * kAlpha + 1e9 / 50e9, 1e-12));
}

TEST(RingCollective, BaseAndEfficiencyOfTheLinkCount) {
  ClusterSpec c = plain_cluster();
  c.intra_node.base = Seconds{1e-5};
  c.intra_node.efficiency = 0.5;
  EXPECT_TRUE(near_rel(ring_collective_time(c, CommOp::kAllReduce, kPayload, {8, 8}).v,
                       1e-5 + 2 * (7 * kAlpha + 7.0 / 8 * 1e9 / (0.5 * kRate)),
                       1e-12));
}

TEST(RingCollective, OneRankCostsNothing) {
  for (const CommOp op : {CommOp::kAllReduce, CommOp::kAllGather, CommOp::kReduceScatter}) {
    EXPECT_EQ(time(op, kPayload, {1, 1}), 0);
  }
  const CostModel measured = testing::ideal_cost(testing::ideal_cluster(1));
  EXPECT_EQ(measured.collective_time(CommOp::kAllReduce, kPayload, {1, 1}).v, 0);
}

TEST(RingCollective, MonotoneInBytesAndInverseBandwidth) {
  for (const GroupShape shape : {GroupShape{4, 4}, GroupShape{16, 8}, GroupShape{2, 1}}) {
    for (const CommOp op : {CommOp::kAllReduce, CommOp::kAllGather, CommOp::kSendRecv}) {
      double before = 0;
      for (const double bytes : {0.0, 1.0, 1e3, 1e6, 1e9, 1e12}) {
        const double t = time(op, Bytes{bytes}, shape);
        EXPECT_GT(t, before - 1e-18);
        before = t;
        ClusterSpec slower = plain_cluster();
        slower.intra_node.bandwidth = slower.intra_node.bandwidth / 2;
        slower.inter_node.bandwidth = slower.inter_node.bandwidth / 2;
        EXPECT_GE(ring_collective_time(slower, op, Bytes{bytes}, shape).v, t);
      }
    }
  }
}

TEST(MeasuredCollective, LineOfTheGroupOrBetweenTheNearest) {
  Calibration c;
  c.collectives = {
      {.op = CommOp::kAllReduce, .group_size = 2, .alpha_s = 1e-4, .beta_s_per_byte = 1e-9},
      {.op = CommOp::kAllReduce, .group_size = 4, .alpha_s = 3e-4, .beta_s_per_byte = 2e-9}};
  const auto t = [&](int n) {
    return measured_collective_time(c, CommOp::kAllReduce, Bytes{1e6}, n).v;
  };
  EXPECT_DOUBLE_EQ(t(2), 1e-4 + 1e-3);
  EXPECT_DOUBLE_EQ(t(3), 2e-4 + 1.5e-3);
  EXPECT_DOUBLE_EQ(t(4), 3e-4 + 2e-3);
  EXPECT_DOUBLE_EQ(t(8), t(4));  // held beyond what was measured
  EXPECT_EQ(t(1), 0);
}

TEST(MeasuredCollective, CalibrationOfOneRankFallsBackToTheDataSheet) {
  Calibration c = testing::ideal_calibration();
  c.collectives.clear();
  const ClusterSpec cluster = testing::ideal_cluster(2);
  const CostModel cost(cluster, std::make_shared<const Calibration>(c));
  EXPECT_EQ(cost.collective_time(CommOp::kAllReduce, kPayload, {2, 2}),
            ring_collective_time(cluster, CommOp::kAllReduce, kPayload, {2, 2}));
}

TEST(LinkCollective, GenerationsOfTheLinksPriceGpuClusters) {
  const ClusterSpec c = testing::builtin_cluster("64xh100");
  EXPECT_EQ(c.intra_node.generation, "nvlink4");
  const CollectiveConstants& k = collective_constants();
  const auto t = [&](CommOp op, GroupShape shape) {
    return CostModel(c, nullptr).collective_time(op, kPayload, shape).v;
  };
  EXPECT_TRUE(
      near_rel(t(CommOp::kAllGather, {4, 4}),
               1e-6 * domain_time_us(k.nccl, *k.link("nvlink4"), CommOp::kAllGather, 1e9, {4}),
               1e-12));
  EXPECT_TRUE(near_rel(
      t(CommOp::kAllReduce, {16, 8}),
      1e-6 *
          nodes_time_us(
              k.nccl, *k.link("nvlink4"), *k.network("ib_ndr"), CommOp::kAllReduce, 1e9, {16, 8}),
      1e-12));
  EXPECT_EQ(t(CommOp::kAllToAll, {1, 1}), 0);
}

TEST(LinkCollective, RatesScaleWithTheLinksOfTheCluster) {
  ClusterSpec c = testing::builtin_cluster("64xh100");
  const auto t = [&](GroupShape shape) {
    return link_collective_time(c, CommOp::kAllGather, Bytes{8e9}, shape).v;
  };
  const double inside = t({8, 8}), across = t({64, 8});
  c.intra_node.bandwidth = c.intra_node.bandwidth / 2;
  EXPECT_GT(t({8, 8}), 1.9 * inside);
  c = testing::builtin_cluster("64xh100");
  c.inter_node.efficiency = 0.5;  // beside computation
  EXPECT_GT(t({64, 8}), 1.9 * across);
  EXPECT_EQ(t({8, 8}), inside);
}

TEST(LinkCollective, WithoutAGenerationItIsTheRing) {
  const ClusterSpec c = plain_cluster();
  for (const GroupShape shape : {GroupShape{8, 8}, GroupShape{16, 8}}) {
    EXPECT_EQ(link_collective_time(c, CommOp::kAllReduce, kPayload, shape),
              ring_collective_time(c, CommOp::kAllReduce, kPayload, shape));
  }
}

TEST(LinkCollective, OneKnownGenerationBesideAPlainLink) {
  ClusterSpec c = plain_cluster();
  c.inter_node = {.bandwidth = BytesPerSecond{50e9}, .generation = "ib_ndr"};
  const NetworkConstants& ndr = *collective_constants().network("ib_ndr");
  // One rank a node: two steps of the network.
  EXPECT_TRUE(near_rel(link_collective_time(c, CommOp::kAllGather, kPayload, {3, 1}).v,
                       2 * ndr.simple_hop_us * 1e-6 + 2.0 / 3 * 1e9 / (50e9 * ndr.efficiency),
                       1e-12));
}

TEST(GroupShapes, TpIsInsideANodeAndDpAcross) {
  const Mesh mesh({.dp_replicate = 4, .tp = 4, .pp = 2});
  const ClusterSpec c = testing::builtin_cluster("32xh100");
  const GroupShape tp = group_shape(mesh, c, GroupKind::kTp);
  EXPECT_EQ(tp.num_ranks, 4);
  EXPECT_TRUE(tp.inside_node());
  const GroupShape dp = group_shape(mesh, c, GroupKind::kDp);  // ranks 0, 4, 8, 12
  EXPECT_EQ(dp.num_ranks, 4);
  EXPECT_EQ(dp.ranks_per_node, 2);
}

}  // namespace
}  // namespace meshwright
