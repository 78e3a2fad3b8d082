// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/collectives/domain_time.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/cost/collectives/nodes_time.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::near_rel;

constexpr double kMiB = 1048576;
constexpr NcclConstants kPlainNccl{.ll128_overlap = 1,
                                   .nvls_fill_loops = 2,
                                   .nvls_min_ranks = 6,
                                   .nvls_min_bytes = 4 * kMiB,
                                   .nvls_from_bytes = 2 * kMiB,
                                   .ll128_hop_over_ll = 1.5};

/// Round numbers, and an in-switch reduction without synchronisation.
LinkConstants plain_link() {
  LinkConstants c{.generation = "plain",
                  .line_rate_GBps = 100,
                  .base_us = 5,
                  .ll = {.base_us = 0, .hop_us = 1, .rate_GBps = 10},
                  .ll128 = {.base_us = 1, .hop_us = 2, .rate_GBps = 50},
                  .simple = {.base_us = 10, .hop_us = 4, .rate_GBps = 80},
                  .ll128_max_chunk_bytes = kMiB};
  c.all_to_all = {.base_us = 6, .peer_us = 0.5, .ll_rate_GBps = 20, .simple_rate_GBps = 60};
  return c;
}

double plain_time(CommOp op, double bytes, int n) {
  return domain_time_us(kPlainNccl, plain_link(), op, bytes, {n});
}

// 1 GB/s is 1000 bytes per us. n = 4: 3 steps for all-gather, 6 for all-reduce.
TEST(DomainTime, TheFasterOfLlAndLl128BelowTheSwitch) {
  EXPECT_DOUBLE_EQ(plain_time(CommOp::kAllGather, 4000, 4), 5 + 3 + 0.3);
  EXPECT_DOUBLE_EQ(plain_time(CommOp::kAllReduce, 4000, 4), 5 + 6 + 0.6);
  // At 400 kB LL takes 5 + 3 + 30, LL128 6 + 6 + 6.
  EXPECT_DOUBLE_EQ(plain_time(CommOp::kReduceScatter, 400000, 4), 18);
}

TEST(DomainTime, SimpleAboveTheSwitchEvenWhereItIsSlower) {
  const double at = 4 * kMiB;  // 1 MiB per rank
  EXPECT_TRUE(near_rel(plain_time(CommOp::kAllGather, at, 4), 12 + 0.75 * at / 50e3, 1e-12));
  EXPECT_TRUE(
      near_rel(plain_time(CommOp::kAllGather, 10 * at, 4), 15 + 12 + 7.5 * at / 80e3, 1e-12));
}

TEST(DomainTime, TheOwnChunkIsCopiedToo) {
  LinkConstants c = plain_link();
  c.local_copy = 0.5;
  const double s = 400e6;
  EXPECT_TRUE(near_rel(domain_time_us(kPlainNccl, c, CommOp::kAllGather, s, {2}),
                       5 + 10 + 4 + s * 1.5 / 2 / 80e3,
                       1e-12));
  EXPECT_TRUE(near_rel(domain_time_us(kPlainNccl, c, CommOp::kAllReduce, s, {2}),
                       5 + 10 + 8 + s * 2.5 / 2 / 80e3,
                       1e-12));
}

TEST(DomainTime, LatencyAndTransferOverlapInTheSimpleProtocol) {
  LinkConstants c = plain_link();
  c.simple_overlap = 2;
  const double s = 16 * kMiB;
  EXPECT_TRUE(near_rel(domain_time_us(kPlainNccl, c, CommOp::kAllGather, s, {4}),
                       15 + std::hypot(12, 0.75 * s / 80e3),
                       1e-12));
  EXPECT_DOUBLE_EQ(overlapped(3, 4, 2), 5);
  EXPECT_DOUBLE_EQ(overlapped(3, 4, 1), 7);
  EXPECT_DOUBLE_EQ(overlapped(0, 0, 2), 0);
}

TEST(DomainTime, AllToAllAndMessages) {
  EXPECT_DOUBLE_EQ(plain_time(CommOp::kAllToAll, 4000, 4), 6 + 1.5 + 0.15);
  EXPECT_TRUE(near_rel(plain_time(CommOp::kAllToAll, 4e8, 4), 6 + 1.5 + 10 + 3e8 / 60e3, 1e-12));
  EXPECT_DOUBLE_EQ(plain_time(CommOp::kSendRecv, 1000, 2), 5 + 1 + 0.1);
  EXPECT_TRUE(near_rel(plain_time(CommOp::kSendRecv, 8e8, 2), 5 + 4 + 1e4, 1e-12));
}

TEST(DomainTime, TwoRanksOfAPcieRootHaveARateOfTheirOwn) {
  LinkConstants c = plain_link();
  c.ll128 = {};
  c.ll128_max_chunk_bytes = 0;
  c.pair_rate_GBps = 160;
  EXPECT_TRUE(near_rel(
      domain_time_us(kPlainNccl, c, CommOp::kAllGather, 8e8, {2}), 19 + 4e8 / 160e3, 1e-12));
  EXPECT_TRUE(near_rel(
      domain_time_us(kPlainNccl, c, CommOp::kAllGather, 8e8, {4}), 27 + 6e8 / 80e3, 1e-12));
}

// NVIDIA/nccl src/enqueue.cc, calcCollChunking: 16 channels x 8 ranks halve a chunk of 128 KiB
// below 64 loops (1 GiB), of 64 KiB below 8 (64 MiB), of 32 KiB below 2 (8 MiB).
TEST(DomainTime, NvlsChunksGrowWithTheMessage) {
  EXPECT_EQ(nvls_chunk_bytes(8 * kMiB - 1, 128), 16384);
  EXPECT_EQ(nvls_chunk_bytes(8 * kMiB, 128), 32768);
  EXPECT_EQ(nvls_chunk_bytes(64 * kMiB, 128), 65536);
  EXPECT_EQ(nvls_chunk_bytes(1024 * kMiB, 128), 131072);
}

TEST(DomainTime, NvlsIsLoopsAndTheirFill) {
  LinkConstants c = plain_link();
  c.nvls = {.loop_us = 3, .rate_GBps = 200, .channels = 16};
  const double loop_bytes = 128 * 65536;
  const double loop = 3 + loop_bytes / 200e3;
  EXPECT_TRUE(near_rel(domain_time_us(kPlainNccl, c, CommOp::kAllReduce, 256 * kMiB, {8}),
                       5 + (2 + 256 * kMiB / loop_bytes) * loop,
                       1e-12));
  // Smaller groups, other operations and a user's switch keep the ring.
  const double ring = plain_time(CommOp::kAllReduce, 256 * kMiB, 8);
  EXPECT_EQ(domain_time_us(kPlainNccl, c, CommOp::kAllReduce, 256 * kMiB, {8, 0, false}), ring);
  EXPECT_EQ(domain_time_us(kPlainNccl, c, CommOp::kAllReduce, 256 * kMiB, {4}),
            plain_time(CommOp::kAllReduce, 256 * kMiB, 4));
  EXPECT_EQ(domain_time_us(kPlainNccl, c, CommOp::kAllGather, 256 * kMiB, {8}),
            plain_time(CommOp::kAllGather, 256 * kMiB, 8));
}

constexpr NetworkConstants plain_network() {
  NetworkConstants n;
  n.line_rate_GBps = 10;
  n.efficiency = 0.5;
  n.ll_hop_us = 8;
  n.simple_hop_us = 16;
  n.fill_loops = 0;
  return n;
}

double over_nodes(CommOp op, double bytes, NodesGroup group) {
  return nodes_time_us(kPlainNccl, plain_link(), plain_network(), op, bytes, group);
}

TEST(NodesTime, RingOfFourNodesIsPacedByTheirNics) {
  // 8 ranks on 4 nodes: 3 of 7 steps cross, 2 NICs of 5 GB/s carry 7/8 of the tensor.
  EXPECT_TRUE(near_rel(
      over_nodes(CommOp::kAllGather, 8e8, {8, 2}), 5 + 10 + 4 * 4 + 3 * 16 + 7e8 / 10e3, 1e-12));
  // Half the NICs, twice the time beyond latency.
  EXPECT_TRUE(near_rel(over_nodes(CommOp::kAllGather, 8e8, {8, 2, 0, 5}),
                       5 + 10 + 4 * 4 + 3 * 16 + 7e8 / 5e3,
                       1e-12));
}

TEST(NodesTime, TreeOfTwoNodesSendsTheTensorOnceEachWay) {
  // Ring: 15/8 of the tensor; tree: once. 2 ((8-1) 4 + 16) of latency.
  EXPECT_TRUE(near_rel(over_nodes(CommOp::kAllReduce, 8e8, {16, 8}),
                       5 + 10 + 2 * (7 * 4 + 16) + std::max(16e8 / 80e3, 8e8 / 40e3),
                       1e-12));
}

TEST(NodesTime, SmallMessagesTakeLogarithmicallyManyHops) {
  // LL tree of 8 nodes of one rank: 2 x 3 hops of 8 us; a ring takes 14.
  EXPECT_TRUE(near_rel(over_nodes(CommOp::kAllReduce, 0, {8, 1}), 5 + 48, 1e-12));
  // PAT: 3 hops of Simple (16) against 7 of LL (8) or Simple.
  EXPECT_TRUE(near_rel(over_nodes(CommOp::kAllGather, 8e7, {8, 1}),
                       5 + 10 + std::min(7 * 16 + 7e7 / 5e3, 3 * 16 + 7e7 / 3.75e3),
                       1e-12));
}

TEST(NodesTime, AllToAllLeavesByEachRanksOwnNic) {
  EXPECT_TRUE(
      near_rel(over_nodes(CommOp::kAllToAll, 16e8, {16, 8}), 6 + 15 * 0.5 + 16 + 8e8 / 5e3, 1e-12));
  EXPECT_TRUE(near_rel(over_nodes(CommOp::kSendRecv, 1e9, {2, 1}), 5 + 16 + 1e9 / 5e3, 1e-12));
}

// The built-in constants of every generation.

CommOp any_op() { return static_cast<CommOp>(*rc::gen::inRange(0, kNumCommOps)); }

const LinkConstants& any_link() {
  const auto& links = collective_constants().links;
  return links[*rc::gen::inRange<size_t>(0, links.size())];
}

double any_bytes() { return std::exp2(*rc::gen::inRange(0, 36000) / 1000.0); }

RC_GTEST_PROP(BuiltInLinks, TimeGrowsWithBytes, ()) {
  const LinkConstants& link = any_link();
  const CommOp op = any_op();
  const int n = *rc::gen::inRange(2, 73);
  const double a = any_bytes(), b = any_bytes();
  const auto t = [&](double s) {
    return domain_time_us(collective_constants().nccl, link, op, s, {n});
  };
  RC_ASSERT(t(std::min(a, b)) <= t(std::max(a, b)) * (1 + 1e-12));
}

RC_GTEST_PROP(BuiltInLinks, TimeGrowsWithInverseBandwidth, ()) {
  const LinkConstants& link = any_link();
  const CommOp op = any_op();
  const int n = *rc::gen::inRange(2, 73);
  const double s = any_bytes();
  const double slow = link.line_rate_GBps * *rc::gen::inRange(1, 100) / 100.0;
  RC_ASSERT(domain_time_us(collective_constants().nccl, link, op, s, {n, slow}) >=
            domain_time_us(collective_constants().nccl, link, op, s, {n, link.line_rate_GBps}) *
                (1 - 1e-12));
}

RC_GTEST_PROP(BuiltInLinks, OverNodesToo, ()) {
  const LinkConstants& link = any_link();
  const auto& networks = collective_constants().networks;
  const NetworkConstants& network = networks[*rc::gen::inRange<size_t>(0, networks.size())];
  const CommOp op = any_op();
  const int per_node = *rc::gen::element(1, 2, 4, 8);
  const int nodes = *rc::gen::inRange(1, 40);
  const NodesGroup group{.num_ranks = per_node * nodes, .ranks_per_node = per_node};
  NodesGroup slower = group;
  slower.nic_GBps = network.line_rate_GBps / *rc::gen::inRange(1, 9);
  const double a = any_bytes(), b = any_bytes();
  const auto t = [&](double s, const NodesGroup& g) {
    return nodes_time_us(collective_constants().nccl, link, network, op, s, g);
  };
  RC_ASSERT(t(std::min(a, b), group) <= t(std::max(a, b), group) * (1 + 1e-12));
  RC_ASSERT(t(a, slower) >= t(a, group) * (1 - 1e-12));
  RC_ASSERT(std::isfinite(t(a, group)) && t(a, group) >= 0);
}

TEST(BuiltInLinks, OneRankCostsNothing) {
  for (const LinkConstants& link : collective_constants().links) {
    for (int op = 0; op < kNumCommOps; ++op) {
      EXPECT_EQ(
          domain_time_us(collective_constants().nccl, link, static_cast<CommOp>(op), 1e9, {1}), 0);
    }
  }
}

TEST(BuiltInLinks, EveryGenerationAndNetworkIsThere) {
  for (const char* link : {"nvlink3", "nvlink4", "nvlink5", "pcie4", "pcie5"}) {
    EXPECT_NE(collective_constants().link(link), nullptr) << link;
  }
  for (const char* network : {"ib_hdr", "ib_ndr"}) {
    EXPECT_NE(collective_constants().network(network), nullptr) << network;
  }
  EXPECT_EQ(collective_constants().link("nvlink9"), nullptr);
}

}  // namespace
}  // namespace meshwright
