// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random
// bits as a pure function of a counter and a key. No state means that a rank computes any element
// of any tensor without the ones before it, which is what lets a sharded model start from the same
// weights as a whole one.
#pragma once

#include <array>
#include <cstdint>

namespace meshwright::kernels {

/// Four random words; for a fixed key a bijection of the counter. Agrees with Random123's known
/// answers.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                                         std::array<std::uint32_t, 2> key);

}  // namespace meshwright::kernels
