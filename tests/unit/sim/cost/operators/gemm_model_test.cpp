// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/operators/gemm_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/cost/operators/operator_fits.h"

namespace meshwright {
namespace {

GemmConstants constants(const std::string& device, GemmKind kind) {
  const auto chosen =
      choose_fit(builtin_operator_fits("gemm"), *find_builtin_gpu(device), to_string(kind));
  return constants_from(gemm_model_constants(kind), chosen->fit->constants).value();
}

struct Case {
  const char* device;
  GemmKind kind;
};
const std::vector<Case> kCases{{"a100-80g", GemmKind::kBf16},
                               {"h100", GemmKind::kBf16},
                               {"b200", GemmKind::kFp8},
                               {"l40s", GemmKind::kInt8WeightOnly},
                               {"rtx-pro-6000", GemmKind::kBf16}};
const std::vector<GemmShape> kShapes{
    {1, 4096, 4096}, {16, 1024, 8192}, {128, 12288, 5120}, {2048, 2048, 2048}, {4096, 28672, 8192}};

TEST(GemmModel, EachDimensionCosts) {
  for (const Case& c : kCases) {
    const GemmConstants k = constants(c.device, c.kind);
    const GpuFacts gpu = gpu_facts(*find_builtin_gpu(c.device));
    for (const GemmShape& s : kShapes) {
      const double once = gemm_time_us(k, gpu, c.kind, s);
      EXPECT_GT(gemm_time_us(k, gpu, c.kind, {s.m, 4 * s.n, s.k}), once) << c.device << " " << s.m;
      EXPECT_GT(gemm_time_us(k, gpu, c.kind, {s.m, s.n, 4 * s.k}), once) << c.device << " " << s.m;
      if (s.m > 8) {  // below, another kernel
        EXPECT_GT(gemm_time_us(k, gpu, c.kind, {4 * s.m, s.n, s.k}), once) << c.device << s.m;
      }
    }
  }
}

TEST(GemmModel, BetterHardwareIsFaster) {
  for (const Case& c : kCases) {
    const GemmConstants k = constants(c.device, c.kind);
    const GpuFacts gpu = gpu_facts(*find_builtin_gpu(c.device));
    GpuFacts memory = gpu, cores = gpu;
    memory.dram_bytes_per_us *= 2;
    cores.bf16_flop_per_us *= 2;
    cores.fp8_flop_per_us *= 2;
    for (const GemmShape& s : kShapes) {
      EXPECT_LT(gemm_time_us(k, memory, c.kind, s), gemm_time_us(k, gpu, c.kind, s))
          << c.device << " " << s.m;
      EXPECT_LE(gemm_time_us(k, cores, c.kind, s), gemm_time_us(k, gpu, c.kind, s))
          << c.device << " " << s.m;
    }
  }
}

TEST(GemmModel, LargeMatmulsReachTheFittedFractionOfPeak) {
  const GemmConstants k = constants("h100", GemmKind::kBf16);
  const GpuFacts gpu = gpu_facts(*find_builtin_gpu("h100"));
  constexpr double kSide = 16384;
  const double us = gemm_time_us(k, gpu, GemmKind::kBf16, {16384, 16384, 16384});
  const double fraction = 2 * kSide * kSide * kSide / us / gpu.bf16_flop_per_us;
  // Measured H100: 794.5 of 989 TFLOP/s at best (stas00/ml-engineering, MAMF).
  EXPECT_NEAR(fraction, 0.75, 0.08);
}

TEST(GemmModel, SmallBatchesReadTheWeightsOnce) {
  const GemmConstants k = constants("h100", GemmKind::kBf16);
  const GpuFacts gpu = gpu_facts(*find_builtin_gpu("h100"));
  const double us = gemm_time_us(k, gpu, GemmKind::kBf16, {1, 16384, 16384});
  const double bandwidth = 2 * 16384.0 * 16384.0 / us;
  EXPECT_NEAR(bandwidth / gpu.dram_bytes_per_us, 0.87, 0.07);
}

TEST(GemmModel, EveryKindNamesItsConstants) {
  EXPECT_EQ(gemm_model_constants(GemmKind::kBf16).size(), 16u);
  EXPECT_EQ(gemm_model_constants(GemmKind::kFp8).size(), 17u);
  EXPECT_EQ(gemm_model_constants(GemmKind::kInt8WeightOnly).size(), 19u);
  EXPECT_EQ(gemm_kind("bfloat16"), GemmKind::kBf16);
  EXPECT_EQ(gemm_kind("nvfp4"), std::nullopt);
}

}  // namespace
}  // namespace meshwright
