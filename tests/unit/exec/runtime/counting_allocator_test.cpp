// SPDX-License-Identifier: Apache-2.0
// The allocator's figures, to the byte. Each test runs in a child of its own: the allocator is
// global.
#include "exec/runtime/counting_allocator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "tests/unit/exec/spawn_ranks.h"

namespace meshwright {
namespace {

TEST(CountingAllocator, CountsRequestedBytesAndThePeak) {
  spawn_one([] {
    install_counting_allocator();
    const int64_t start = allocator_stats().live_bytes;
    auto a = at::empty({1001});
    EXPECT_EQ(allocator_stats().live_bytes - start, 4004);
    {
      const auto b = at::full({3}, 1.0, at::kDouble);
      EXPECT_EQ(allocator_stats().live_bytes - start, 4028);
    }
    EXPECT_EQ(allocator_stats().live_bytes - start, 4004);
    EXPECT_EQ(allocator_stats().peak_bytes - start, 4028);
    reset_peak();
    EXPECT_EQ(allocator_stats().peak_bytes - start, 4004);
    a.reset();
    EXPECT_EQ(allocator_stats().live_bytes, start);
  });
}

TEST(CountingAllocator, ReusesBlocksOfOneSizeClass) {
  spawn_one([] {
    install_counting_allocator();
    const void* first = at::empty({100'000}).data_ptr();
    const auto warm = allocator_stats();
    for (int i = 0; i < 100; ++i) {
      const auto t = at::empty({100'000 - i});
      EXPECT_EQ(t.data_ptr(), first);
    }
    EXPECT_EQ(allocator_stats().system_allocations, warm.system_allocations);
    EXPECT_EQ(allocator_stats().reserved_bytes, warm.reserved_bytes);
    release_cached_blocks();
    EXPECT_EQ(allocator_stats().reserved_bytes, 0);
    EXPECT_EQ(allocator_stats().live_bytes, 0);
  });
}

TEST(CountingAllocator, AlignsAndWastesAtMostAnEighth) {
  spawn_one([] {
    install_counting_allocator();
    for (const int64_t bytes :
         {1, 63, 64, 65, 511, 512, 513, 1023, 1025, 65'537, 1 << 20, 5'000'001}) {
      release_cached_blocks();
      const auto t = at::empty({bytes}, at::kByte);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data_ptr()) % 64, 0u) << bytes;
      const int64_t held = allocator_stats().reserved_bytes - 64;  // without the header
      EXPECT_GE(held, bytes);
      EXPECT_LE(held, bytes + std::max<int64_t>(63, bytes / 8)) << bytes;
    }
  });
}

TEST(CountingAllocator, RawInterfaceAndZeroBytes) {
  spawn_one([] {
    install_counting_allocator();
    auto* const allocator = c10::GetCPUAllocator();
    ASSERT_NE(allocator->raw_deleter(), nullptr);
    void* data = allocator->raw_allocate(77);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(allocator_stats().live_bytes, 77);
    allocator->raw_deallocate(data);
    EXPECT_EQ(allocator_stats().live_bytes, 0);
    const auto nothing = allocator->allocate(0);
    EXPECT_EQ(nothing.get(), nothing.get_context());
    allocator->raw_deallocate(allocator->raw_allocate(0));
    EXPECT_EQ(at::empty({0}).numel(), 0);
    EXPECT_EQ(allocator_stats().live_bytes, 0);
    EXPECT_ANY_THROW((void)allocator->allocate(size_t{1} << 60));
    EXPECT_ANY_THROW((void)allocator->allocate(size_t{1} << 46));
    EXPECT_EQ(allocator_stats().live_bytes, 0);
  });
}

TEST(CountingAllocator, CountsBlocksThatAnotherThreadFrees) {
  spawn_one([] {
    install_counting_allocator();
    constexpr int kThreads = 4;
    constexpr int kBlocks = 2000;
    std::vector<std::vector<at::Tensor>> tensors(kThreads);
    std::vector<std::thread> threads;
    for (auto& mine : tensors) {
      threads.emplace_back([&mine] {
        for (int i = 0; i < kBlocks; ++i) mine.push_back(at::empty({1 + i % 50}));
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(allocator_stats().live_bytes, int64_t{kThreads} * kBlocks / 50 * 4 * (50 * 51 / 2));
    threads.clear();
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back(
          [&theirs = tensors[static_cast<size_t>((i + 1) % kThreads)]] { theirs.clear(); });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(allocator_stats().live_bytes, 0);
  });
}

}  // namespace
}  // namespace meshwright
