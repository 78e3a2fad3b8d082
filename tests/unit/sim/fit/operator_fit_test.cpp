// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/operator_fit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sim/cost/operators/attention_model.h"
#include "tests/unit/sim/fit/synthetic.h"
#include "tests/unit/sim/temporary_file.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFile;

constexpr const char* kHeader =
    "gpu,batch_size,isl,num_heads,num_key_value_heads,head_dim,step,latency_ms\n";
constexpr const char* kGemmHeader = "gpu,dtype,m,n,k,latency_ms\n";

const DecodeConstants kTruth{.start_us = 6,
                             .kv_fraction = 0.8,
                             .sm_feed_GBps = 120,
                             .mma_fraction = 0.4,
                             .cta_us = 2,
                             .cta_width = 0.3,
                             .group_us = 0.2,
                             .split_us = 1,
                             .reduce_us = 0.1,
                             .max_mha_split = 1,
                             .norm_q = 2.5,
                             .l2_share = 0.5,
                             .l2_gain = 2,
                             .extra_us = 3};

/// Decode times of kTruth on an H100, off by up to `noise`.
std::string decode_table(double noise) {
  const GpuFacts gpu = gpu_facts(*find_builtin_gpu("h100"));
  testing::Noise random;
  std::string text = kHeader;
  for (const int64_t batch : {1, 8, 64, 512}) {
    for (const int64_t kv_heads : {1, 4, 32}) {
      for (const int64_t dim : {64, 128, 256}) {
        for (int64_t cached = 1; cached <= 65536; cached *= 4) {
          const AttentionCall shape{batch, 1, cached, 32, kv_heads, dim};
          const double us = decode_time_us(kTruth, gpu, shape) * std::exp(noise * random.next());
          text += fmt::format(
              "h100_sxm,{},1,32,{},{},{},{:.9g}\n", batch, kv_heads, dim, cached, us / 1e3);
        }
      }
    }
  }
  return text;
}

std::string message_of(const Result<OperatorFits>& fits) {
  EXPECT_FALSE(fits.has_value());
  return fits ? "" : to_string(fits.error());
}

TEST(OperatorFit, RecoversAModelFromItsOwnTimes) {
  const TemporaryFile file(decode_table(0.03), "decode.csv");
  const auto fits = fit_operator_files({file.path()}, {.origin = "made up"});
  ASSERT_TRUE(fits.has_value()) << to_string(fits.error());
  EXPECT_EQ(fits->family, "attention");
  EXPECT_EQ(fits->origin, "made up");
  ASSERT_EQ(fits->fits.size(), 1u);
  const OperatorFit& fit = fits->fits.front();
  EXPECT_EQ(fit.device, "h100");  // the table's name is an alias
  EXPECT_EQ(fit.kind, "decode");
  EXPECT_EQ(fit.rows, 324);
  EXPECT_EQ(fit.constants.at("max_mha_split"), 1);
  EXPECT_NEAR(fit.constants.at("start_us"), kTruth.start_us, 0.05 * kTruth.start_us);
  EXPECT_NEAR(fit.constants.at("kv_fraction"), kTruth.kv_fraction, 0.05 * kTruth.kv_fraction);
  EXPECT_NEAR(fit.constants.at("cta_us"), kTruth.cta_us, 0.05 * kTruth.cta_us);
  EXPECT_NEAR(fit.constants.at("extra_us"), kTruth.extra_us, 0.1 * kTruth.extra_us);
  EXPECT_LT(fit.held_out.median, 0.02);  // of uniform noise of +-3 %: 1.5 %
  EXPECT_LT(fit.held_out.p90, 0.035);
}

TEST(OperatorFit, OnlyTheAskedDevice) {
  const TemporaryFile file(decode_table(0.03), "decode.csv");
  EXPECT_THAT(message_of(fit_operator_files({file.path()}, {.device = "a100_sxm"})),
              HasSubstr("no device and kind has 100 usable rows"));
  EXPECT_THAT(message_of(fit_operator_files({file.path()}, {.device = "tpu"})),
              HasSubstr("is not a built-in GPU"));
}

TEST(OperatorFit, RefusesWhatItCannotFit) {
  const TemporaryFile other("a,b\n1,2\n", "other.csv");
  EXPECT_THAT(message_of(fit_operator_files({other.path()}, {})),
              HasSubstr("matches no table of operator times"));
  const TemporaryFile gemm(std::string(kGemmHeader) + "h100_sxm,bf16,1,2,3,4\n", "gemm.csv");
  EXPECT_THAT(message_of(fit_operator_files({gemm.path()}, {})), HasSubstr("100 usable rows"));
  const TemporaryFile decode(std::string(kHeader) + "h100_sxm,1,1,1,1,64,1,1\n", "decode.csv");
  EXPECT_THAT(message_of(fit_operator_files({gemm.path(), decode.path()}, {})),
              HasSubstr("another family"));
}

}  // namespace
}  // namespace meshwright
