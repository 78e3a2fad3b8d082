// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/dropout/dropout.h"
#include "kernels/random/philox.h"
#include "kernels/simd.h"

namespace meshwright::kernels {
namespace {

float kept_scale(double p) { return static_cast<float>(1.0 / (1.0 - p)); }

}  // namespace

void dropout_forward(float* x_inout,
                     std::uint8_t* mask,
                     std::int64_t n,
                     std::uint64_t first,
                     std::uint64_t seed,
                     std::uint64_t site_key,
                     double p) {
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32U); };
  const auto dropped_below = static_cast<std::uint64_t>(p * 0x1p32);
  const float scale = kept_scale(p);
  std::array<std::uint32_t, 4> words{};
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t element = first + static_cast<std::uint64_t>(i);
    const std::uint64_t lane = element % 4;
    if (i == 0 || lane == 0) {
      const std::uint64_t block = element / 4;
      words = philox4x32_10({low(block), high(block), low(site_key), high(site_key)},
                            {low(seed), high(seed)});
    }
    const bool kept = words[lane] >= dropped_below;
    mask[i] = kept ? 1 : 0;
    x_inout[i] = kept ? x_inout[i] * scale : 0.0F;
  }
}

MW_SIMD_CLONES
void dropout_backward(
    const float* dy, const std::uint8_t* mask, float* dx, std::int64_t n, double p) {
  const float scale = kept_scale(p);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] = mask[i] != 0 ? dy[i] * scale : 0.0F;
}

}  // namespace meshwright::kernels
