// SPDX-License-Identifier: Apache-2.0
// A row of logits can exceed the L1 cache, so exponentials are summed in blocks while they are
// still there.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/exp.h"
#include "kernels/lane_sum.h"

namespace meshwright::kernels {
namespace {

constexpr std::int64_t kBlock = 2048;  // floats, 8 KiB

bool owns(std::int64_t label, std::int64_t vocab_begin, std::int64_t cols) {
  return label >= vocab_begin && label < vocab_begin + cols;
}

/// Largest of x [n], NaN left out; -infinity for n = 0. Lanes by hand, because a compiler may not
/// reorder a maximum that could meet NaN, and then does not vectorise it.
MW_ALWAYS_INLINE float largest_of(const float* x, std::int64_t n) {
  constexpr std::int64_t kLanes = 32;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<float>::infinity());
  std::int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = x[j + lane] > lanes[lane] ? x[j + lane] : lanes[lane];
    }
  }
  for (std::int64_t lane = 0; j + lane < n; ++lane) {
    lanes[lane] = x[j + lane] > lanes[lane] ? x[j + lane] : lanes[lane];
  }
  return *std::max_element(lanes, lanes + kLanes);
}

}  // namespace

MW_SIMD_CLONES
void logits_row_max(const float* logits, float* row_max, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* l = logits + row * cols;
    row_max[row] = largest_of(l, cols);
  }
}

MW_SIMD_CLONES
void logits_exp_sum(float* logits_inout,
                    const float* row_max,
                    const std::int64_t* labels,
                    std::int64_t vocab_begin,
                    float* sum_exp,
                    float* target_logit,
                    std::int64_t rows,
                    std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* l = logits_inout + row * cols;
    const float largest = row_max[row];
    target_logit[row] =
        owns(labels[row], vocab_begin, cols) ? l[labels[row] - vocab_begin] - largest : 0.0F;
    double sum = 0.0;
    for (std::int64_t begin = 0; begin < cols; begin += kBlock) {
      float* block = l + begin;
      const std::int64_t size = std::min(kBlock, cols - begin);
#pragma omp simd
      for (std::int64_t j = 0; j < size; ++j) block[j] = fast_exp(block[j] - largest);
      sum += lane_sum(size, [block](std::int64_t j) { return static_cast<double>(block[j]); });
    }
    sum_exp[row] = static_cast<float>(sum);
  }
}

MW_SIMD_CLONES
double cross_entropy_finish(float* exp_inout,
                            const float* sum_exp,
                            const float* target_logit,
                            const std::int64_t* labels,
                            std::int64_t vocab_begin,
                            std::int64_t ignore_label,
                            float grad_scale,
                            std::int64_t rows,
                            std::int64_t cols) {
  double loss = 0.0;
  for (std::int64_t row = 0; row < rows; ++row) {
    float* e = exp_inout + row * cols;
    if (labels[row] == ignore_label) {
      // Not a product with 0: NaN logits of a padded row must not survive.
      std::fill(e, e + cols, 0.0F);
      continue;
    }
    const double total = static_cast<double>(sum_exp[row]);
    loss += std::log(total) - static_cast<double>(target_logit[row]);
    const float scale = static_cast<float>(static_cast<double>(grad_scale) / total);
#pragma omp simd
    for (std::int64_t j = 0; j < cols; ++j) e[j] *= scale;
    if (owns(labels[row], vocab_begin, cols)) e[labels[row] - vocab_begin] -= grad_scale;
  }
  return loss;
}

}  // namespace meshwright::kernels
