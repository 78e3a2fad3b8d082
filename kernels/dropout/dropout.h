// Dropout (Srivastava et al. 2014) whose mask depends on seed, site and global element alone, so
// that every layout drops the same elements, and a recomputed forward drops them again.
//
// Global element e of a site is dropped where lane e % 4 of philox4x32_10(counter = e / 4 and the
// site's key, key = the seed) is below p 2^32. What is kept is scaled by 1 / (1 - p).
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// x [n] in place; mask [n] becomes 1 where it is kept, else 0. Element 0 is the site's global
/// element `first`.
void dropout_forward(float* x_inout,
                     std::uint8_t* mask,
                     std::int64_t n,
                     std::uint64_t first,
                     std::uint64_t seed,
                     std::uint64_t site_key,
                     double p);

/// dx[i] = dy[i] mask[i] / (1 - p). dx may be dy.
void dropout_backward(
    const float* dy, const std::uint8_t* mask, float* dx, std::int64_t n, double p);

}  // namespace meshwright::kernels
