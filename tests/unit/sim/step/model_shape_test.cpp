// SPDX-License-Identifier: Apache-2.0
#include "sim/step/model_shape.h"

#include <gtest/gtest.h>

#include "sim/spec/logical_tensors.h"
#include "sim/step/published_models.h"
#include "tests/unit/sim/step/step_shapes.h"

namespace meshwright {
namespace {

TEST(ModelShape, CountsParametersAsHuggingFaceDoes) {
  // LESSONS: exact totals of the published checkpoints.
  EXPECT_EQ(total_parameters(published_model("Llama-2-7B").value()), 6738415616.0);
  EXPECT_EQ(total_parameters(published_model("LLAMA3_8B").value()), 8030261248.0);
  EXPECT_EQ(total_parameters(published_model("LLAMA3.1 70B").value()), 70553706496.0);
}

TEST(ModelShape, AgreesWithModelSpec) {
  for (const char* name : {"llama-3-8b", "llama-2-70b", "mistral-7b"}) {
    const ModelSpec spec = load_model(name).value();
    EXPECT_EQ(total_parameters(model_shape(spec)), static_cast<double>(parameter_count(spec)))
        << name;
  }
}

TEST(ModelShape, MixturesCountActiveParameters) {
  struct Case {
    const char* name;
    double total_b, active_b;
  };
  // As the models' cards print them.
  for (const Case& c : {Case{"Mixtral 8x7B", 46.7, 12.9},
                        Case{"DeepSeekV3", 671, 37},
                        Case{"Qwen3_235B_a22B", 235, 22},
                        Case{"Qwen3_30B_a3B", 30.5, 3.3},
                        Case{"GPT OSS 120B", 117, 5.1},
                        Case{"Nemotron_3_Nano", 31.6, 3.6}}) {
    const ModelShape m = published_model(c.name).value();
    EXPECT_NEAR(total_parameters(m) / 1e9, c.total_b, 0.02 * c.total_b) << c.name;
    EXPECT_NEAR(active_parameters(m) / 1e9, c.active_b, 0.12 * c.active_b) << c.name;
  }
}

TEST(ModelShape, TheLongestAliasWins) {
  EXPECT_EQ(published_model("Llama 3.1 405B")->num_layers(), 126);
  EXPECT_EQ(published_model("DeepSeek-V2-Lite")->num_layers(), 27);
  EXPECT_FALSE(published_model("a model nobody published").has_value());
}

TEST(ModelShape, FlopsOfAStepAreMegatronsFormula) {
  // arXiv:2104.04473 equation 3 without recompute: 72 B s L h^2 (1 + s/6h + V/12Lh).
  const double b = 8, s = 2048, layers = 24, h = 4096, v = 51200;
  const double expected = 72 * b * s * layers * h * h * (1 + s / (6 * h) + v / (12 * layers * h));
  EXPECT_NEAR(model_flops(testing::gpt(layers, h, 32), b, s, false) / expected, 1, 1e-12);
  const double causal = 72 * b * s * layers * h * h * (1 + s / (12 * h) + v / (12 * layers * h));
  EXPECT_NEAR(model_flops(testing::gpt(layers, h, 32), b, s, true) / causal, 1, 1e-12);
}

}  // namespace
}  // namespace meshwright
