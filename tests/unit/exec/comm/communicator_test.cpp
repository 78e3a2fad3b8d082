// SPDX-License-Identifier: Apache-2.0
// Every operation on real processes, held to values computed by hand and to zero hidden tensor
// bytes.
#include "exec/comm/communicator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <stdexcept>
#include <thread>

#include "exec/runtime/counting_allocator.h"
#include "tests/unit/exec/spawn_ranks.h"

namespace meshwright {
namespace {

std::vector<int> all_ranks(const CommWorld& world) {
  std::vector<int> ranks(static_cast<size_t>(world.world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Rank r holds i + 1000 r at position i: each shard of each rank can be told apart. Exact in float.
at::Tensor pattern(int64_t n, int rank, at::ScalarType type = at::kFloat) {
  return at::arange(n, at::TensorOptions().dtype(type)).add_(1000 * rank);
}

at::Tensor pattern_sum(int64_t n, int size, at::ScalarType type = at::kFloat) {
  return at::arange(n, at::TensorOptions().dtype(type))
      .mul_(size)
      .add_(1000 * size * (size - 1) / 2);
}

class Collectives : public ::testing::TestWithParam<int> {};

TEST_P(Collectives, AllReduceSumsAndTakesTheMaximum) {
  spawn_ranks(GetParam(), [](CommWorld& world) {
    const auto group = world.group(all_ranks(world));
    ASSERT_EQ(group->rank(), world.rank());
    for (const int64_t n : {0, 1, 3, 7, 1024, 300'001}) {
      for (const auto type : {at::kFloat, at::kDouble, at::kLong}) {
        auto t = pattern(n, group->rank(), type);
        group->all_reduce(t);
        EXPECT_TRUE(at::equal(t, pattern_sum(n, group->size(), type))) << n << " " << type;
        t = pattern(n, group->rank(), type);
        group->all_reduce(t, ReduceOp::kMax);
        EXPECT_TRUE(at::equal(t, pattern(n, group->size() - 1, type))) << n << " " << type;
      }
    }
  });
}

TEST_P(Collectives, ReduceScatterLeavesTheOwnShardOfTheSum) {
  spawn_ranks(GetParam(), [](CommWorld& world) {
    const auto group = world.group(all_ranks(world));
    for (const int64_t k : {0, 1, 5, 70'001}) {
      const int64_t n = k * group->size();
      const auto expected = pattern_sum(n, group->size()).narrow(0, k * group->rank(), k);
      const auto out = at::empty({k});
      group->reduce_scatter(out, pattern(n, group->rank()));
      EXPECT_TRUE(at::equal(out, expected)) << k;
      const auto flat = pattern(n, group->rank());
      group->reduce_scatter_in_place_async(flat).wait();
      EXPECT_TRUE(at::equal(flat.narrow(0, k * group->rank(), k), expected)) << k;
    }
  });
}

TEST_P(Collectives, AllGatherSpreadsEachShard) {
  spawn_ranks(GetParam(), [](CommWorld& world) {
    const auto group = world.group(all_ranks(world));
    for (const int64_t k : {0, 1, 5, 70'001}) {
      const int64_t n = k * group->size();
      const auto whole = at::arange(n, at::kFloat);
      const auto own = whole.narrow(0, k * group->rank(), k);
      const auto out = at::zeros({n});
      group->all_gather(out, own);
      EXPECT_TRUE(at::equal(out, whole)) << k;
      const auto flat = at::zeros({n});
      flat.narrow(0, k * group->rank(), k).copy_(own);
      group->all_gather_in_place_async(flat).wait();
      EXPECT_TRUE(at::equal(flat, whole)) << k;
    }
    // Rows of a matrix, two gathers in flight, waited for in the other order.
    const auto a = at::full({2 * group->size(), 3}, group->rank());
    const auto b = at::full({group->size(), 5}, 10 * group->rank());
    auto first = group->all_gather_in_place_async(a);
    auto second = group->all_gather_in_place_async(b);
    second.wait();
    first.wait();
    for (int r = 0; r < group->size(); ++r) {
      EXPECT_TRUE(at::equal(a.narrow(0, 2 * r, 2), at::full({2, 3}, r)));
      EXPECT_TRUE(at::equal(b.narrow(0, r, 1), at::full({1, 5}, 10 * r)));
    }
  });
}

TEST_P(Collectives, AllocateNoTensorMemory) {
  spawn_ranks(GetParam(), [](CommWorld& world) {
    install_counting_allocator();
    const auto group = world.group(all_ranks(world));
    const int64_t k = 65'536;
    const auto whole = pattern(k * group->size(), group->rank());
    const auto shard = at::zeros({k});
    const int next = (group->rank() + 1) % group->size();
    const int previous = (group->rank() + group->size() - 1) % group->size();
    group->barrier();
    reset_peak();
    const int64_t live = allocator_stats().live_bytes;
    group->all_reduce(whole);
    group->reduce_scatter(shard, whole);
    group->reduce_scatter_in_place_async(whole).wait();
    group->all_gather(whole, shard);
    group->all_gather_in_place_async(whole).wait();
    if (group->size() > 1) {
      auto sent = group->send_async(shard, next, 0);
      group->recv(whole.narrow(0, 0, k), previous, 0);
      sent.wait();
    }
    group->barrier();
    EXPECT_EQ(allocator_stats().peak_bytes, live);
    EXPECT_EQ(allocator_stats().live_bytes, live);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(1, 2, 3, 4));

TEST(Communicator, SendAndReceiveKeepOrderAndTagsApart) {
  spawn_ranks(3, [](CommWorld& world) {
    const auto group = world.group({2, 0, 1});  // indices differ from global ranks
    const int next = (group->rank() + 1) % 3;
    const int previous = (group->rank() + 2) % 3;
    const auto ours = pattern(5, group->rank());
    const auto ours_too = pattern(7, group->rank() + 10);
    std::vector<Pending> sends;
    sends.push_back(group->send_async(ours, next, 4));
    sends.push_back(group->send_async(ours_too, next, 9));
    sends.push_back(group->send_async(at::empty({0}), next, 4));
    sends.push_back(group->send_async(at::full({2}, 3.0), next, 4));
    const auto a = at::empty({5});
    const auto b = at::empty({7});
    const auto c = at::empty({2});
    group->recv(b, previous, 9);
    group->recv(a, previous, 4);
    group->recv(at::empty({0}), previous, 4);
    auto last = group->recv_async(c, previous, 4);
    last.wait();
    for (auto& send : sends) send.wait();
    EXPECT_TRUE(at::equal(a, pattern(5, previous)));
    EXPECT_TRUE(at::equal(b, pattern(7, previous + 10)));
    EXPECT_TRUE(at::equal(c, at::full({2}, 3.0)));
  });
}

TEST(Communicator, TwoGroupsAtOnce) {
  spawn_ranks(4, [](CommWorld& world) {
    // A 2 x 2 mesh: rows {0,1} {2,3}, columns {0,2} {1,3}.
    const auto top = world.group({0, 1});
    const auto bottom = world.group({2, 3});
    const auto left = world.group({0, 2});
    const auto right = world.group({1, 3});
    EXPECT_EQ(top == nullptr, world.rank() >= 2);
    EXPECT_EQ(left == nullptr, world.rank() % 2 == 1);
    EXPECT_EQ(top, world.group({0, 1}));
    const auto& row = top ? top : bottom;
    const auto& column = left ? left : right;
    EXPECT_EQ(row->rank(), world.rank() % 2);
    EXPECT_EQ(column->rank(), world.rank() / 2);
    for (int round = 0; round < 20; ++round) {
      const auto a = at::full({50'001}, 1 + world.rank());
      const auto b = at::full({7}, 10.0 * (1 + world.rank()));
      auto along_row = row->all_reduce_async(a);
      auto along_column = column->all_reduce_async(b);
      along_column.wait();
      along_row.wait();
      EXPECT_TRUE(at::equal(a, at::full({50'001}, world.rank() < 2 ? 3 : 7)));
      EXPECT_TRUE(at::equal(b, at::full({7}, world.rank() % 2 == 0 ? 40.0 : 60.0)));
    }
  });
}

TEST(Communicator, AllReduceRunsBehindCompute) {
  spawn_ranks(2, [](CommWorld& world) {
    const auto group = world.group(all_ranks(world));
    std::vector<Pending> pending;
    std::vector<at::Tensor> buffers;
    const auto a = at::full({64, 64}, 1.0 / 64);
    auto product = a;
    for (int i = 0; i < 16; ++i) {
      buffers.push_back(pattern(100'003, world.rank()));
      pending.push_back(group->all_reduce_async(buffers.back()));
      EXPECT_TRUE(pending.back().valid());
      product = at::mm(product, a);
    }
    for (auto& p : pending) {
      p.wait();
      EXPECT_FALSE(p.valid());
      p.wait();
    }
    for (const auto& b : buffers) EXPECT_TRUE(at::equal(b, pattern_sum(100'003, 2)));
    EXPECT_TRUE(at::equal(product, a));
  });
}

TEST(Communicator, PendingHoldsTheTensorAndWaitsWhenDropped) {
  spawn_ranks(2, [](CommWorld& world) {
    const auto group = world.group(all_ranks(world));
    const auto kept = pattern(100'003, world.rank());
    { auto dropped = group->all_reduce_async(kept); }
    EXPECT_TRUE(at::equal(kept, pattern_sum(100'003, 2)));
    auto pending = group->all_reduce_async(pattern(100'003, world.rank()));  // nobody else owns it
    auto moved = std::move(pending);
    EXPECT_TRUE(moved.valid());
    moved = Pending();
    EXPECT_FALSE(moved.valid());
  });
}

TEST(Communicator, AVanishedPeerIsAnErrorNotAHang) {
  spawn_ranks(
      2,
      [](CommWorld& world) {
        const auto group = world.group(all_ranks(world));
        const auto t = at::full({1000}, 1);
        group->all_reduce(t);
        if (world.rank() == 1) _exit(0);
        EXPECT_ANY_THROW(group->all_reduce(t));
        EXPECT_ANY_THROW(group->recv(t, 1, 0));
      },
      std::chrono::seconds(2));
}

TEST(Communicator, ASilentPeerTimesOut) {
  spawn_ranks(
      2,
      [](CommWorld& world) {
        const auto group = world.group(all_ranks(world));
        const auto t = at::full({1000}, 1);
        if (world.rank() == 1) {
          std::this_thread::sleep_for(std::chrono::seconds(3));
          return;
        }
        const auto start = std::chrono::steady_clock::now();
        EXPECT_ANY_THROW(group->all_reduce(t));
        const auto waited = std::chrono::steady_clock::now() - start;
        EXPECT_LT(waited, std::chrono::milliseconds(2500));
      },
      std::chrono::seconds(1));
}

TEST(Communicator, OneRankNeedsNoStore) {
  spawn_one([] {
    const auto world = CommWorld::connect("file:/nowhere/at/all", 0, 1, std::chrono::seconds(1));
    const auto group = world->group({0});
    const auto t = at::full({3}, 2);
    group->all_reduce(t);
    group->barrier();
    EXPECT_TRUE(at::equal(t, at::full({3}, 2)));
  });
}

TEST(Communicator, ReachesRanksThroughATcpStore) {
  // A port of its own for this process, out of the ephemeral range.
  const std::string url = "tcp:127.0.0.1:" + std::to_string(20'000 + getpid() % 10'000);
  spawn_ranks(2, [&](CommWorld& by_file) {
    const auto world = CommWorld::connect(url, by_file.rank(), 2, std::chrono::seconds(10));
    const auto group = world->group({0, 1});
    const auto t = at::full({3}, 2);
    group->all_reduce(t);
    EXPECT_TRUE(at::equal(t, at::full({3}, 4)));
    group->barrier();
  });
}

TEST(Communicator, RejectsAnUnknownStoreUrl) {
  for (const char* url :
       {"", "file:", "tcp:host", "tcp::1", "tcp:host:", "tcp:host:70000", "mpi:1"}) {
    EXPECT_THROW((void)CommWorld::connect(url, 0, 1, std::chrono::seconds(1)),
                 std::invalid_argument)
        << url;
  }
}

TEST(Communicator, ScratchOfAllReduceIsTwoRingSegments) {
  EXPECT_EQ(Communicator::all_reduce_scratch_bytes(1 << 20, 1, 4), 0);
  EXPECT_EQ(Communicator::all_reduce_scratch_bytes(0, 4, 4), 0);
  EXPECT_EQ(Communicator::all_reduce_scratch_bytes(1 << 20, 2, 4), 2 * (1 << 18));   // 4 segments
  EXPECT_EQ(Communicator::all_reduce_scratch_bytes(16 << 20, 2, 4), 2 * (1 << 20));  // 16 segments
  EXPECT_EQ(Communicator::all_reduce_scratch_bytes(4, 2, 4), 8);
}

}  // namespace
}  // namespace meshwright
