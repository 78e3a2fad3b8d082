// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/operators/attention_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace meshwright {
namespace {

constexpr double kElementBytes = 2;
constexpr double kLargestQueryBlock = 256;
constexpr int64_t kWideHead = 256;
constexpr double kMaxSplit = 256;
constexpr double kMinKeysPerSplit = 64;
constexpr double kExtraKernelPerSm = 4;  // KV heads up to which the engine runs its extra kernel

using PrefillC = PrefillConstants;
using PrefillEntry = ModelConstant<PrefillC>;
constexpr std::array kPrefillConstants{
    PrefillEntry{"start_us", &PrefillC::start_us, 8, 0.5, 30},
    PrefillEntry{"mma_fraction", &PrefillC::mma_fraction, 0.7, 0.2, 1.1},
    PrefillEntry{"exp_per_clock", &PrefillC::exp_per_clock, 10, 1, 64},
    PrefillEntry{"overlap_r", &PrefillC::overlap_r, 2, 1, 10},
    PrefillEntry{"wide_head_factor", &PrefillC::wide_head_factor, 1.5, 0.5, 5},
    PrefillEntry{"cta_us", &PrefillC::cta_us, 1.5, 0.05, 10},
    PrefillEntry{"tail_share", &PrefillC::tail_share, 1, 0.05, 3},
    PrefillEntry{"least_query_block",
                 &PrefillC::least_query_block,
                 64,
                 32,
                 kLargestQueryBlock,
                 ConstantKind::kPowerOfTwo},
    PrefillEntry{"kv_head_us", &PrefillC::kv_head_us, 0.3, 0.001, 5},
    PrefillEntry{"io_fraction", &PrefillC::io_fraction, 0.8, 0.2, 1.3},
    PrefillEntry{"rope_fraction", &PrefillC::rope_fraction, 0.8, 0.1, 3},
    PrefillEntry{"append_weight", &PrefillC::append_weight, 2, 0.2, 10},
    PrefillEntry{"norm_q", &PrefillC::norm_q, 4, 1, 10},
    PrefillEntry{"l2_share", &PrefillC::l2_share, 0.6, 0.02, 3},
    PrefillEntry{"l2_gain", &PrefillC::l2_gain, 2, 1, 10},
    PrefillEntry{"sustained", &PrefillC::sustained, 0.1, 0.001, 1},
    PrefillEntry{"sustained_us", &PrefillC::sustained_us, 2e4, 300, 1e5}};

using DecodeC = DecodeConstants;
using DecodeEntry = ModelConstant<DecodeC>;
constexpr std::array kDecodeConstants{
    DecodeEntry{"start_us", &DecodeC::start_us, 7, 0.5, 30},
    DecodeEntry{"kv_fraction", &DecodeC::kv_fraction, 0.85, 0.2, 1.3},
    DecodeEntry{"sm_feed_GBps", &DecodeC::sm_feed_GBps, 80, 10, 800},
    DecodeEntry{"mma_fraction", &DecodeC::mma_fraction, 0.3, 0.05, 1.5},
    DecodeEntry{"cta_us", &DecodeC::cta_us, 3, 0.1, 10},
    DecodeEntry{"cta_width", &DecodeC::cta_width, 0.1, 0.001, 0.9},
    DecodeEntry{"group_us", &DecodeC::group_us, 0.25, 0.01, 3},
    DecodeEntry{"split_us", &DecodeC::split_us, 0.6, 0.01, 6},
    DecodeEntry{"reduce_us", &DecodeC::reduce_us, 0.2, 0.001, 2},
    DecodeEntry{
        "max_mha_split", &DecodeC::max_mha_split, 256, 1, kMaxSplit, ConstantKind::kPowerOfTwo},
    DecodeEntry{"norm_q", &DecodeC::norm_q, 2, 1, 10},
    DecodeEntry{"l2_share", &DecodeC::l2_share, 0.6, 0.02, 3},
    DecodeEntry{"l2_gain", &DecodeC::l2_gain, 2, 1, 6},
    DecodeEntry{"extra_us", &DecodeC::extra_us, 1, 0.001, 12}};

struct AttentionSizes {
  double batch, new_tokens, cached, heads, kv_heads, dim;
};
AttentionSizes sizes_of(const AttentionCall& s) {
  return {static_cast<double>(s.batch),
          static_cast<double>(s.new_tokens),
          static_cast<double>(s.cached),
          static_cast<double>(s.num_heads),
          static_cast<double>(s.num_kv_heads),
          static_cast<double>(s.head_dim)};
}

/// max(x, y) for a large q, x + y for q = 1.
double attention_overlap(double x, double y, double q) {
  const double high = std::max(x, y), low = std::min(x, y);
  return high * std::pow(1 + std::pow(low / high, q), 1 / q);
}

}  // namespace

std::span<const ModelConstant<PrefillConstants>> prefill_model_constants() {
  return kPrefillConstants;
}
std::span<const ModelConstant<DecodeConstants>> decode_model_constants() {
  return kDecodeConstants;
}

double prefill_time_us(const PrefillConstants& c, const GpuFacts& gpu, const AttentionCall& shape) {
  const auto [batch, tokens, cached, heads, kv_heads, dim] = sizes_of(shape);
  // One score element, the whole device at work.
  const double mma_us = 4 * dim / (c.mma_fraction * gpu.bf16_flop_per_us);
  const double exp_us = 1e-3 / (c.exp_per_clock * gpu.num_sms * gpu.clock_GHz);
  double element_us = attention_overlap(mma_us, exp_us, c.overlap_r);
  if (shape.head_dim > kWideHead) element_us *= c.wide_head_factor;

  double core_us = std::numeric_limits<double>::infinity();
  for (double block = c.least_query_block; block <= kLargestQueryBlock; block *= 2) {
    const double blocks = std::ceil(tokens / block);
    // Causal: block i of a head meets i blocks of new keys and all cached ones.
    const double elements = batch * heads * block * blocks * (block * (blocks + 1) / 2 + cached);
    const double longest_us = block * (block * blocks + cached) * element_us * gpu.num_sms;
    const double ctas_per_sm = std::max(batch * heads * blocks / gpu.num_sms, 1.0);
    const double work_us = elements * element_us;
    const double tail_us = c.tail_share / 2 * std::min(longest_us, work_us);
    core_us = std::min(core_us, std::max(work_us, longest_us) + tail_us + ctas_per_sm * c.cta_us);
  }
  core_us *= 1 + c.sustained * core_us / (core_us + c.sustained_us);
  core_us += batch * kv_heads / gpu.num_sms * c.kv_head_us;

  const double bytes =
      kElementBytes * batch * dim * (2 * tokens * (heads + kv_heads) + 2 * kv_heads * cached);
  const double l2_factor = l2_time_factor(bytes / (c.l2_share * gpu.l2_bytes), c.l2_gain);
  const double io_us = l2_factor * bytes / (c.io_fraction * gpu.dram_bytes_per_us);
  // Read and written once.
  const double rope_bytes =
      2 * kElementBytes * batch * tokens * dim * (heads + 2 * c.append_weight * kv_heads);
  const double rope_us = l2_factor * rope_bytes / (c.rope_fraction * gpu.dram_bytes_per_us);
  return c.start_us + rope_us + attention_overlap(core_us, io_us, c.norm_q);
}

double decode_time_us(const DecodeConstants& c, const GpuFacts& gpu, const AttentionCall& shape) {
  const auto [batch, tokens, cached, heads, kv_heads, dim] = sizes_of(shape);
  const double keys = cached + 1;
  const double caches = batch * kv_heads;
  const double group = heads / kv_heads;
  const double cache_bytes = 2 * kElementBytes * keys * dim;  // K and V of one KV head

  const double fixed_us =
      c.cta_us * (1 + c.cta_width * (dim / 128 - 1)) + c.group_us * group * dim / 1024;
  const double stream_us = cache_bytes / (c.sm_feed_GBps * 1e3);
  const double max_split = shape.num_heads == shape.num_kv_heads ? c.max_mha_split : kMaxSplit;
  double core_us = std::numeric_limits<double>::infinity();
  for (double split = 1; split <= max_split; split *= 2) {
    if (split > 1 && keys / split < kMinKeysPerSplit) break;
    double time_us = std::max(caches * split / gpu.num_sms, 1.0) * fixed_us + stream_us / split;
    if (split > 1) time_us += c.split_us + c.reduce_us * split;
    core_us = std::min(core_us, time_us);
  }

  const double bytes = caches * cache_bytes + 2 * kElementBytes * batch * dim * (heads + kv_heads);
  const double memory_us = bytes * l2_time_factor(bytes / (c.l2_share * gpu.l2_bytes), c.l2_gain) /
                           (c.kv_fraction * gpu.dram_bytes_per_us);
  const double mma_us = 4 * batch * heads * keys * dim / (c.mma_fraction * gpu.bf16_flop_per_us);
  const double q = c.norm_q;
  double time_us =
      c.start_us +
      std::pow(std::pow(core_us, q) + std::pow(memory_us, q) + std::pow(mma_us, q), 1 / q);
  const bool extra = shape.num_kv_heads > 1 && shape.batch > 1 && group > 1 &&
                     caches <= kExtraKernelPerSm * gpu.num_sms;
  if (extra) time_us += c.extra_us;
  return time_us;
}

}  // namespace meshwright
