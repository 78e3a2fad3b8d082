// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw/adamw.h"

#include <gtest/gtest.h>

#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

struct State {
  std::vector<double> param, exp_avg, exp_avg_sq;
};

/// torch.optim.AdamW, single-tensor form, line by line in double.
void reference(State& state, const std::vector<float>& grad, const AdamWStep& s) {
  const auto t = static_cast<double>(s.step);
  for (std::size_t i = 0; i < grad.size(); ++i) {
    const double g = static_cast<double>(grad[i]) * s.grad_scale;
    state.param[i] -= s.learning_rate * s.weight_decay * state.param[i];
    state.exp_avg[i] = s.beta1 * state.exp_avg[i] + (1.0 - s.beta1) * g;
    state.exp_avg_sq[i] = s.beta2 * state.exp_avg_sq[i] + (1.0 - s.beta2) * g * g;
    const double root = std::sqrt(state.exp_avg_sq[i]) / std::sqrt(1.0 - std::pow(s.beta2, t));
    state.param[i] -=
        s.learning_rate / (1.0 - std::pow(s.beta1, t)) * state.exp_avg[i] / (root + s.eps);
  }
}

class AdamW : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, AdamW, ::testing::ValuesIn(kColumnCounts));

TEST_P(AdamW, TwentyStepsMatchDouble) {
  const std::int64_t n = GetParam();
  auto param = random_floats(n, 1);
  std::vector<float> exp_avg(at(n), 0.0F);
  std::vector<float> exp_avg_sq(at(n), 0.0F);
  State state{to_double(param), to_double(exp_avg), to_double(exp_avg_sq)};
  AdamWStep step{.learning_rate = 1e-2, .beta2 = 0.95, .weight_decay = 0.1, .grad_scale = 0.5};
  for (step.step = 1; step.step <= 20; ++step.step) {
    const auto grad = random_floats(n, static_cast<std::uint32_t>(100 + step.step));
    adamw(param.data(), grad.data(), exp_avg.data(), exp_avg_sq.data(), n, step);
    reference(state, grad, step);
  }
  expect_close(param, state.param, 2e-6);
  expect_close(exp_avg, state.exp_avg, 1e-6, 0.1);
  expect_close(exp_avg_sq, state.exp_avg_sq, 1e-6, 0.1);
}

TEST(AdamWKnownAnswer, FirstStepMovesByTheLearningRate) {
  // m / (1 - beta1) = g and sqrt(v / (1 - beta2)) = |g|: the step is lr * sign(g), whatever the
  // size of g.
  std::vector<float> param = {1.0F, 1.0F, 1.0F};
  const std::vector<float> grad = {2e-3F, -50.0F, 0.0F};
  std::vector<float> exp_avg(3, 0.0F);
  std::vector<float> exp_avg_sq(3, 0.0F);
  const AdamWStep step{.learning_rate = 0.25, .weight_decay = 0.5, .step = 1};
  adamw(param.data(), grad.data(), exp_avg.data(), exp_avg_sq.data(), 3, step);
  // Decay alone: 1 - 0.25 * 0.5 = 0.875.
  EXPECT_NEAR(param[0], 0.625F, 2e-6F);
  EXPECT_NEAR(param[1], 1.125F, 2e-6F);
  EXPECT_EQ(param[2], 0.875F);
}

}  // namespace
}  // namespace meshwright::kernels
