// How one dimension is dealt out: contiguous parts of ceil(n / parts), the last ones shorter or
// empty.
//
// The same rule shards vocabulary, feed-forward width and flat optimizer state, so that part 0 is
// always a largest one and nothing is padded: every element belongs to exactly one part (an empty
// part is legal).
#pragma once

#include <algorithm>
#include <cstdint>

namespace meshwright {

struct ShardRange {
  int64_t begin = 0;
  int64_t end = 0;
  [[nodiscard]] constexpr int64_t size() const { return end - begin; }
};

[[nodiscard]] constexpr ShardRange shard_range(int64_t n, int64_t parts, int64_t index) {
  const int64_t chunk = (n + parts - 1) / parts;
  const int64_t begin = std::min(n, index * chunk);
  return {begin, std::min(n, begin + chunk)};
}

}  // namespace meshwright
