// A caching CPU allocator for all ATen tensors that counts what they ask for, to the byte.
//
// The memory model predicts bytes; a run is held to that prediction by peak_bytes, which counts
// requested bytes (not rounded sizes, not the heap's own overhead), so that equal means equal.
// Blocks are kept for reuse by size class (eight per power of two, at most 1/8 wasted), since a
// training step asks for the same sizes again and again and fresh pages cost more than the
// arithmetic on a small one.
//
// Not counted: what libraries take from the heap directly (Gloo's segments, oneDNN's and BLAS's
// packing).
#pragma once

#include <cstdint>

namespace meshwright {

struct AllocatorStats {
  int64_t live_bytes = 0;      ///< Requested bytes of blocks in use.
  int64_t peak_bytes = 0;      ///< Highest live_bytes since the start or reset_peak().
  int64_t reserved_bytes = 0;  ///< Bytes held from the system: in use and cached, headers included.
  int64_t system_allocations =
      0;  ///< Blocks taken from the system so far; constant once a loop is warm.
};

/// Makes it the allocator of CPU tensors from now on; also raises malloc's mmap and trim
/// thresholds, so that libraries reuse pages too. Call before the first tensor and before threads.
/// A second call does nothing.
void install_counting_allocator();

/// Consistent figures at one moment. Thread-safe; zeros before install.
AllocatorStats allocator_stats();

/// Lets peak_bytes start again from live_bytes. Thread-safe.
void reset_peak();

/// Gives cached blocks back to the system: once after start-up, whose sizes never come back.
/// Thread-safe.
void release_cached_blocks();

}  // namespace meshwright
