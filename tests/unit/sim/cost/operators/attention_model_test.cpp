// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/operators/attention_model.h"

#include <gtest/gtest.h>

#include "sim/cost/operators/operator_fits.h"

namespace meshwright {
namespace {

const std::vector<const char*> kDevices{"a100-80g", "h100", "b200", "l40s", "rtx-pro-6000"};

template <class Constants>
Constants attention_constants(const char* device,
                              const char* kind,
                              std::span<const ModelConstant<Constants>> model) {
  const auto chosen =
      choose_fit(builtin_operator_fits("attention"), *find_builtin_gpu(device), kind);
  return constants_from(model, chosen->fit->constants).value();
}

TEST(PrefillModel, GrowsWithEveryDimensionAndFallsWithTheHardware) {
  for (const char* device : kDevices) {
    const auto c = attention_constants(device, "prefill", prefill_model_constants());
    const GpuFacts gpu = gpu_facts(*find_builtin_gpu(device));
    GpuFacts better = gpu;
    better.dram_bytes_per_us *= 2;
    better.bf16_flop_per_us *= 2;
    for (const int64_t tokens : {32, 512, 8192}) {
      const AttentionCall s{4, tokens, 0, 32, 8, 128};
      const double once = prefill_time_us(c, gpu, s);
      EXPECT_GT(prefill_time_us(c, gpu, {16, tokens, 0, 32, 8, 128}), once) << device;
      EXPECT_GT(prefill_time_us(c, gpu, {4, 4 * tokens, 0, 32, 8, 128}), once) << device;
      EXPECT_GT(prefill_time_us(c, gpu, {4, tokens, 0, 128, 8, 128}), once) << device;
      EXPECT_GT(prefill_time_us(c, gpu, {4, tokens, 4096, 32, 8, 128}), once) << device;
      EXPECT_LT(prefill_time_us(c, better, s), once) << device;
    }
  }
}

TEST(PrefillModel, CachedTokensAreRectangularWork) {
  // L new tokens over P cached ones meet L P + L^2 / 2 keys: 8192 over 8192 three times 8192 alone.
  const auto c = attention_constants("h100", "prefill", prefill_model_constants());
  const GpuFacts gpu = gpu_facts(*find_builtin_gpu("h100"));
  const double alone = prefill_time_us(c, gpu, {8, 8192, 0, 32, 8, 128});
  EXPECT_NEAR(prefill_time_us(c, gpu, {8, 8192, 8192, 32, 8, 128}) / alone, 3, 0.25);
}

TEST(DecodeModel, GrowsWithTheCacheAndFallsWithBandwidth) {
  for (const char* device : kDevices) {
    const auto c = attention_constants(device, "decode", decode_model_constants());
    const GpuFacts gpu = gpu_facts(*find_builtin_gpu(device));
    GpuFacts faster = gpu;
    faster.dram_bytes_per_us *= 2;
    for (const int64_t cached : {1, 127, 4095, 32767}) {
      const AttentionCall s{32, 1, cached, 32, 8, 128};
      const double once = decode_time_us(c, gpu, s);
      EXPECT_GT(decode_time_us(c, gpu, {32, 1, 4 * cached, 32, 8, 128}), once) << device;
      EXPECT_GE(decode_time_us(c, gpu, {1024, 1, cached, 32, 8, 128}), once) << device;
      EXPECT_LT(decode_time_us(c, faster, s), once) << device;
    }
  }
}

TEST(DecodeModel, LongCachesStreamAtMemoryBandwidth) {
  const auto c = attention_constants("h100", "decode", decode_model_constants());
  const GpuFacts gpu = gpu_facts(*find_builtin_gpu("h100"));
  const double us = decode_time_us(c, gpu, {64, 1, 65535, 32, 8, 128});
  const double bytes = 4.0 * 64 * 8 * 128 * 65536;
  EXPECT_NEAR(bytes / us / gpu.dram_bytes_per_us, 0.85, 0.1);
}

}  // namespace
}  // namespace meshwright
