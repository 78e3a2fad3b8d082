// SPDX-License-Identifier: Apache-2.0
#include "kernels/swiglu/swiglu.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kRows = 4;

std::vector<double> reference(const std::vector<double>& gate_up, std::int64_t cols) {
  std::vector<double> act;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t j = 0; j < cols; ++j) {
      const double gate = gate_up[at(row * 2 * cols + j)];
      const double up = gate_up[at(row * 2 * cols + cols + j)];
      act.push_back(gate / (1.0 + std::exp(-gate)) * up);
    }
  }
  return act;
}

class Swiglu : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Columns, Swiglu, ::testing::ValuesIn(kColumnCounts));

TEST_P(Swiglu, ForwardMatchesDouble) {
  const std::int64_t cols = GetParam();
  const auto gate_up = random_floats(kRows * 2 * cols, 1, 8.0F);
  std::vector<float> act(at(kRows * cols));
  swiglu_forward(gate_up.data(), act.data(), kRows, cols);
  expect_close(act, reference(to_double(gate_up), cols), 5e-7, 0.0);
}

TEST_P(Swiglu, BackwardMatchesCentralDifferences) {
  const std::int64_t cols = GetParam();
  auto gate_up = random_floats(kRows * 2 * cols, 2, 4.0F);
  const auto dact = random_floats(kRows * cols, 3);
  const auto expected = central_difference(
      [&](const std::vector<double>& v) { return dot(reference(v, cols), to_double(dact)); },
      to_double(gate_up));
  swiglu_backward(gate_up.data(), dact.data(), kRows, cols);
  expect_close(gate_up, expected, 1e-6);
}

TEST(SwigluEdge, LargeGatesAndNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> gate_up = {200.0F, -200.0F, nan, 0.5F, 2.0F, 1.0F};
  std::vector<float> act(3);
  swiglu_forward(gate_up.data(), act.data(), 1, 3);
  EXPECT_EQ(act[0], 100.0F);
  EXPECT_NEAR(act[1], 0.0F, 1e-30F);
  EXPECT_TRUE(std::isnan(act[2]));
}

}  // namespace
}  // namespace meshwright::kernels
