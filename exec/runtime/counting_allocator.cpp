// SPDX-License-Identifier: Apache-2.0
// A block is [64-byte header | data]. The header holds the sizes, so that a bare pointer is enough
// to free it: that is what c10's raw_deleter needs (data == context). One mutex guards all: tensors
// are freed by Gloo's threads too, and an uncontended lock is far below the cost of dispatching one
// operator.
#include "exec/runtime/counting_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>

namespace meshwright {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMaxBytes = size_t{1} << 46;
constexpr size_t kNumClasses = 8 * 48;

struct alignas(kAlignment) Header {
  size_t requested;
  size_t size_class;
  Header* next_free;
};
static_assert(sizeof(Header) == kAlignment);

struct SizeClass {
  size_t index;
  size_t bytes;  ///< Of the data, without the header.
};

// Steps of 1/8 of a power of two, from 512 up; below, steps of 64, which are the same thing there.
SizeClass size_class_of(size_t bytes) {
  const size_t floor_bytes = std::max(bytes, kAlignment);
  const int exponent = std::max(9, static_cast<int>(std::bit_width(floor_bytes - 1)) - 1);
  const size_t step = size_t{1} << (exponent - 3);
  const size_t steps = (floor_bytes + step - 1) / step;  // 1..8 in the first group, 9..16 above it
  return {static_cast<size_t>(exponent - 9) * 8 + steps, steps * step};
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes == 0 ? nullptr : take(bytes);
    return {data, data, &CountingAllocator::give_back, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &CountingAllocator::give_back; }

  void copy_data(void* dest, const void* src, size_t count) const override {
    default_copy_data(dest, src, count);
  }

  AllocatorStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak_bytes = stats_.live_bytes;
  }

  void release_cached() {
    const std::lock_guard lock(mutex_);
    for (Header*& head : free_) {
      while (head != nullptr) {
        Header* block = head;
        head = block->next_free;
        stats_.reserved_bytes -=
            static_cast<int64_t>(size_class_of(block->requested).bytes + sizeof(Header));
        std::free(block);
      }
    }
  }

 private:
  void* take(size_t bytes) {
    TORCH_CHECK(bytes <= kMaxBytes, "cannot allocate ", bytes, " bytes of CPU memory");
    const SizeClass size = size_class_of(bytes);
    const std::lock_guard lock(mutex_);
    Header* block = free_[size.index];
    if (block != nullptr) {
      free_[size.index] = block->next_free;
    } else {
      block = static_cast<Header*>(std::aligned_alloc(kAlignment, sizeof(Header) + size.bytes));
      TORCH_CHECK(block != nullptr,
                  "cannot allocate ",
                  bytes,
                  " bytes of CPU memory: ",
                  stats_.live_bytes,
                  " are in use");
      stats_.reserved_bytes += static_cast<int64_t>(size.bytes + sizeof(Header));
      ++stats_.system_allocations;
    }
    *block = {bytes, size.index, nullptr};
    stats_.live_bytes += static_cast<int64_t>(bytes);
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
    return block + 1;
  }

  static void give_back(void* data);

  void put(Header* block) {
    const std::lock_guard lock(mutex_);
    stats_.live_bytes -= static_cast<int64_t>(block->requested);
    block->next_free = free_[block->size_class];
    free_[block->size_class] = block;
  }

  std::mutex mutex_;
  AllocatorStats stats_;
  std::array<Header*, kNumClasses> free_{};
};

// Never destroyed: a tensor in a static or in a library may be freed after main.
CountingAllocator& instance() {
  static auto* const allocator = new CountingAllocator;
  return *allocator;
}

void CountingAllocator::give_back(void* data) {
  if (data != nullptr) instance().put(static_cast<Header*>(data) - 1);
}

}  // namespace

void install_counting_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);  // glibc's upper limit on 64 bits
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    c10::SetCPUAllocator(&instance(), /*priority=*/1);
  });
}

AllocatorStats allocator_stats() { return instance().stats(); }

void reset_peak() { instance().reset_peak(); }

void release_cached_blocks() { instance().release_cached(); }

}  // namespace meshwright
