// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/rope_frequencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

ModelSpec scaled(const std::string& scaling) {
  ModelSpec m = testing::builtin_model("llama-3.1-8b");
  m.rope_scaling = scaling;
  return m;
}

// Llama 3.1 8B: theta 500,000, heads of 128, factor 8, 1, 4, 8192; the values are those of
// transformers' formula, evaluated apart from this code.
TEST(RopeFrequencies, Llama31) {
  const ModelSpec m = testing::builtin_model("llama-3.1-8b");
  ASSERT_FALSE(m.rope_scaling.empty());
  const std::vector<double> f = rope_frequencies(m).value();
  ASSERT_EQ(f.size(), 64u);
  EXPECT_EQ(f[0], 1);
  EXPECT_NEAR(f[28], 0.0032114459947525913, 1e-12);
  EXPECT_NEAR(f[30], 0.0013718935677611381, 1e-12);
  EXPECT_NEAR(f[32], 0.0005248461609929547, 1e-12);
  EXPECT_NEAR(f[34], 0.00017850781276799638, 1e-12);
  EXPECT_NEAR(f[63], 3.068925988914511e-07, 1e-12);
}

TEST(RopeFrequencies, NoneLinearAndUnknown) {
  const std::vector<double> plain = rope_frequencies(scaled("")).value();
  EXPECT_DOUBLE_EQ(plain[32], std::pow(500000.0, -0.5));
  const std::vector<double> linear =
      rope_frequencies(scaled(R"({"type": "linear", "factor": 4.0})")).value();
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(linear[i], plain[i] / 4);
  EXPECT_EQ(rope_frequencies(scaled(R"({"rope_type": "default"})")).value(), plain);
  EXPECT_THAT(
      to_string(rope_frequencies(scaled(R"({"rope_type": "yarn", "factor": 4.0})")).error()),
      ::testing::HasSubstr("must be one of default, linear, llama3"));
  EXPECT_THAT(to_string(rope_frequencies(scaled(R"({"rope_type": "linear"})")).error()),
              ::testing::HasSubstr("factor"));
}

}  // namespace
}  // namespace meshwright
