// SPDX-License-Identifier: Apache-2.0
// A Feistel network permutes the numbers of an even count of bits whatever its round function is
// (Luby and Rackoff 1988). The smallest such domain that covers n is below 4 n; from a number
// outside [0, n) we step on ("cycle walking", Black and Rogaway 2002), and as the start lies
// inside, its cycle returns to the inside.
#include "kernels/random/permuted_index.h"

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace meshwright::kernels {
namespace {

/// The finalizer of SplitMix64: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

std::uint64_t feistel(std::uint64_t x, unsigned half_bits, std::uint64_t seed) {
  constexpr std::uint64_t kRounds = 8;  // 4 suffice for wide halves; narrow ones mix less per round
  seed = mix(seed);                     // else seeds 1 and 2 would share all round keys but one
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = x >> half_bits;
  std::uint64_t right = x & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t next = left ^ (mix(mix(seed + round) ^ right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

}  // namespace

std::uint64_t permuted_index(std::uint64_t index, std::uint64_t n, std::uint64_t seed) {
  if (index >= n || n > std::uint64_t{1} << 62U) {
    // Walking from outside [0, n) might never end.
    std::fprintf(stderr,
                 "permuted_index: index %" PRIu64 " must be below n %" PRIu64 " <= 2^62\n",
                 index,
                 n);
    std::abort();
  }
  const auto bits = static_cast<unsigned>(std::bit_width(n - 1));
  const unsigned half_bits = bits < 2 ? 1U : (bits + 1) / 2;
  do {
    index = feistel(index, half_bits, seed);
  } while (index >= n);
  return index;
}

}  // namespace meshwright::kernels
