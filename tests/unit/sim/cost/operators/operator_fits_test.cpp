// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/operators/operator_fits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/cost/operators/attention_model.h"
#include "sim/cost/operators/gemm_model.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

const OperatorFits kTwo{
    .family = "gemm",
    .origin = "made up",
    .fits = {
        {.device = "h100", .kind = "bf16", .rows = 10, .constants = {{"a", 1.5}}, .held_out = {}},
        {.device = "b200",
         .kind = "bf16",
         .rows = 20,
         .constants = {{"a", 2.0}},
         .held_out = {.rows = 9, .median = 0.1, .p90 = 0.2, .bias = -0.01, .ratio_low = 0.8}}}};

TEST(OperatorFits, TextAndBack) {
  OperatorFits two = kTwo;
  two.fits[0].held_out.rows = 5;
  two.fits[1].marked = true;
  const auto back = parse_operator_fits(operator_fits_text(two), "text");
  ASSERT_TRUE(back.has_value()) << to_string(back.error());
  EXPECT_EQ(back->family, "gemm");
  EXPECT_EQ(back->origin, "made up");
  ASSERT_EQ(back->fits.size(), 2u);
  EXPECT_EQ(back->fits[1].device, "b200");
  EXPECT_EQ(back->fits[1].rows, 20);
  EXPECT_FALSE(back->fits[0].marked);
  EXPECT_TRUE(back->fits[1].marked);
  EXPECT_EQ(back->fits[1].constants, two.fits[1].constants);
  EXPECT_EQ(back->fits[1].held_out.bias, -0.01);
  EXPECT_EQ(back->fits[1].held_out.ratio_low, 0.8);
}

TEST(OperatorFits, MistakesAreNamed) {
  const auto message = [](const std::string& text) {
    const auto fits = parse_operator_fits(text, "f.json");
    EXPECT_FALSE(fits.has_value());
    return fits ? "" : to_string(fits.error());
  };
  EXPECT_THAT(message("{"), HasSubstr("f.json"));
  EXPECT_THAT(message(R"({"schema_version": 1, "family": "gemm", "fits": []})"),
              HasSubstr("origin"));
  EXPECT_THAT(message(R"({"schema_version": 1, "family": "gemm", "origin": "x", "fits": [
                {"device": "h100", "kind": "bf16", "rows": 1, "constants": {"a": "b"},
                 "held_out": {"rows": 1, "median": 0, "p90": 0, "bias": 0,
                              "ratio_low": 1, "ratio_high": 1}}]})"),
              HasSubstr("a must be a number"));
  EXPECT_THAT(message(R"({"schema_version": 1, "family": "gemm", "origin": "x", "fits": [
                {"device": "h100", "kind": "bf16", "rows": 1, "constants": {}, "held_out": {}}]})"),
              HasSubstr("held_out"));
}

TEST(OperatorFits, OwnThenArchitectureThenNothing) {
  const auto chosen = [](const char* device) {
    return choose_fit(kTwo, *find_builtin_gpu(device), "bf16");
  };
  EXPECT_EQ(chosen("h100")->fit->device, "h100");
  EXPECT_FALSE(chosen("h100")->transferred);
  EXPECT_EQ(chosen("h200")->fit->device, "h100");
  EXPECT_TRUE(chosen("h200")->transferred);
  EXPECT_EQ(chosen("gb300")->fit->device, "b200");
  EXPECT_FALSE(chosen("a100-80g").has_value());
  EXPECT_FALSE(choose_fit(kTwo, *find_builtin_gpu("h100"), "fp8").has_value());
  OperatorFits marked = kTwo;
  marked.fits[0].marked = true;
  EXPECT_TRUE(choose_fit(marked, *find_builtin_gpu("h100"), "bf16").has_value());
  EXPECT_FALSE(choose_fit(marked, *find_builtin_gpu("h200"), "bf16").has_value());
}

/// What the held-out halves must reach, pooled over the devices: the median of each fit is weighed
/// by its rows. Marked sets are left out.
TEST(OperatorFits, BuiltInOnesReachTheirBars) {
  struct Bar {
    const char *family, *kind;
    double median, p90;
    size_t devices;
  };
  for (const Bar& bar : {Bar{"gemm", "bf16", 0.065, 0.20, 7},
                         {"gemm", "fp8", 0.07, 0.24, 6},
                         {"gemm", "int8_wo", 0.08, 0.25, 3},
                         {"attention", "prefill", 0.065, 0.21, 7},
                         {"attention", "decode", 0.065, 0.19, 7}}) {
    double median = 0, p90 = 0, rows = 0;
    size_t devices = 0;
    for (const OperatorFit& fit : builtin_operator_fits(bar.family).fits) {
      if (fit.kind != bar.kind || fit.marked) continue;
      const auto n = static_cast<double>(fit.held_out.rows);
      median += n * fit.held_out.median;
      p90 += n * fit.held_out.p90;
      rows += n;
      ++devices;
    }
    EXPECT_EQ(devices, bar.devices) << bar.kind;
    EXPECT_LE(median / rows, bar.median) << bar.kind;
    EXPECT_LE(p90 / rows, bar.p90) << bar.kind;
  }
}

TEST(OperatorFits, BuiltInOnesAreOfTheModelsAndFew) {
  for (const OperatorFit& fit : builtin_operator_fits("gemm").fits) {
    const auto kind = gemm_kind(fit.kind);
    ASSERT_TRUE(kind.has_value()) << fit.kind;
    EXPECT_TRUE(constants_from(gemm_model_constants(*kind), fit.constants).has_value());
    EXPECT_LE(fit.constants.size(), 20u);
    EXPECT_NE(find_builtin_gpu(fit.device), nullptr) << fit.device;
  }
  for (const OperatorFit& fit : builtin_operator_fits("attention").fits) {
    EXPECT_TRUE(fit.kind == "decode"
                    ? constants_from(decode_model_constants(), fit.constants).has_value()
                    : constants_from(prefill_model_constants(), fit.constants).has_value());
    EXPECT_LE(fit.constants.size(), 20u);
    EXPECT_NE(find_builtin_gpu(fit.device), nullptr) << fit.device;
  }
}

}  // namespace
}  // namespace meshwright
