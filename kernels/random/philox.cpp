// SPDX-License-Identifier: Apache-2.0
// Integers only, so the words are the same on every machine.
#include "kernels/random/philox.h"

namespace meshwright::kernels {

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;  // golden ratio
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;  // sqrt(3) - 1
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    const auto high0 = static_cast<std::uint32_t>(product0 >> 32U);
    const auto high1 = static_cast<std::uint32_t>(product1 >> 32U);
    counter = {high1 ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               high0 ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

}  // namespace meshwright::kernels
