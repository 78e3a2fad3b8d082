// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kElements = 129;

std::vector<double> gelu_reference(const std::vector<double>& x) {
  std::vector<double> y;
  for (const double v : x) {
    y.push_back(0.5 * v * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v))));
  }
  return y;
}

TEST(Gelu, MatchesDoubleAndCentralDifferences) {
  auto x = random_floats(kElements, 1, 5.0F);
  const auto dact = random_floats(kElements, 2);
  std::vector<float> act(x.size());
  gelu_forward(x.data(), act.data(), kElements);
  expect_close(act, gelu_reference(to_double(x)), 1e-6);
  const auto expected = central_difference(
      [&](const std::vector<double>& v) { return dot(gelu_reference(v), to_double(dact)); },
      to_double(x));
  gelu_backward(x.data(), dact.data(), kElements);
  expect_close(x, expected, 2e-6);
}

// Hugging Face transformers' gelu_new(1) = 0.841192.
TEST(Gelu, KnownAnswersAndEdges) {
  const std::vector<float> x = {
      1.0F, 0.0F, 100.0F, -100.0F, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> act(x.size());
  gelu_forward(x.data(), act.data(), 5);
  EXPECT_NEAR(act[0], 0.841192F, 1e-6F);
  EXPECT_EQ(act[1], 0.0F);
  EXPECT_EQ(act[2], 100.0F);
  EXPECT_NEAR(act[3], 0.0F, 1e-30F);
  EXPECT_TRUE(std::isnan(act[4]));
}

TEST(Relu, KeepsWhatIsPositive) {
  std::vector<float> x = {-2.0F, 0.0F, 3.0F};
  const std::vector<float> dact = {5.0F, 6.0F, 7.0F};
  std::vector<float> act(3);
  relu_forward(x.data(), act.data(), 3);
  EXPECT_EQ(act, (std::vector<float>{0.0F, 0.0F, 3.0F}));
  relu_backward(x.data(), dact.data(), 3);
  EXPECT_EQ(x, (std::vector<float>{0.0F, 0.0F, 7.0F}));
}

}  // namespace
}  // namespace meshwright::kernels
