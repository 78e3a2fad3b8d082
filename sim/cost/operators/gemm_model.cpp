// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/operators/gemm_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace meshwright {
namespace {

constexpr double kStepK = 64;
constexpr std::array kTileSides{16.0, 32.0, 64.0, 96.0, 128.0, 192.0, 256.0};
constexpr double kMinTileArea = 1024;
constexpr double kMaxTileArea = 32768;  // accumulators of one CTA: all registers of an SM
constexpr std::array kSplits{1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0};
constexpr double kMinStepsPerSplit = 2;
constexpr double kOutputBytes = 2;
constexpr double kGemvRows = 8;
constexpr double kRereadsFrom = 0.8;  // of L2: operands above it are read again in each wave

using GemmC = GemmConstants;
using GemmEntry = ModelConstant<GemmC>;
constexpr std::array kCommon{
    GemmEntry{"start_us", &GemmC::start_us, 2.2, 0.05, 30},
    GemmEntry{"peak_fraction", &GemmC::peak_fraction, 0.8, 0.3, 1.1},
    GemmEntry{"read_fraction", &GemmC::read_fraction, 0.85, 0.3, 1.3},
    GemmEntry{"write_fraction", &GemmC::write_fraction, 0.7, 0.1, 3},
    GemmEntry{"sm_feed_GBps", &GemmC::sm_feed_GBps, 80, 10, 500},
    GemmEntry{"k_step_us", &GemmC::k_step_us, 0.07, 0.001, 0.6},
    GemmEntry{"wave_us", &GemmC::wave_us, 0.3, 0.003, 6},
    GemmEntry{"wave_rounding", &GemmC::wave_rounding, 0.3, 0.02, 1},
    GemmEntry{"norm_q", &GemmC::norm_q, 2.3, 1, 10},
    GemmEntry{"l2_share", &GemmC::l2_share, 0.7, 0.05, 3},
    GemmEntry{"l2_gain", &GemmC::l2_gain, 2, 1, 10},
    GemmEntry{"reuse_distance", &GemmC::reuse_distance, 8, 1, 100},
    GemmEntry{"least_tile_m", &GemmC::least_tile_m, 16, 16, 128, ConstantKind::kPowerOfTwo},
    GemmEntry{"least_tile_n", &GemmC::least_tile_n, 16, 16, 128, ConstantKind::kPowerOfTwo}};
constexpr std::array kSplitK{GemmEntry{"split_us", &GemmC::split_us, 2.5, 0.1, 40},
                             GemmEntry{"split_fraction", &GemmC::split_fraction, 2, 0.1, 10}};
constexpr std::array kQuantise{
    GemmEntry{"quantise_us", &GemmC::quantise_us, 1.2, 0.05, 5},
    GemmEntry{"quantise_row_ns", &GemmC::quantise_row_ns, 7, 0.5, 30},
    GemmEntry{"quantise_fraction", &GemmC::quantise_fraction, 0.3, 0.05, 2}};
constexpr std::array kGemv{GemmEntry{"gemv_us", &GemmC::gemv_us, 8, 0.5, 40},
                           GemmEntry{"gemv_fraction", &GemmC::gemv_fraction, 0.75, 0.3, 1.3},
                           GemmEntry{"gemv_step_us", &GemmC::gemv_step_us, 0.3, 0.01, 3}};

template <size_t... N>
constexpr auto joined(const std::array<GemmEntry, N>&... arrays) {
  std::array<GemmEntry, (N + ...)> all{};
  size_t n = 0;
  ((std::copy(arrays.begin(), arrays.end(), all.begin() + n), n += N), ...);
  return all;
}
constexpr auto kBf16Constants = joined(kCommon, kSplitK);
constexpr auto kFp8Constants = joined(kCommon, kQuantise);
constexpr auto kInt8Constants = joined(kCommon, kSplitK, kGemv);

struct OperandWidth {
  double a_bytes, b_bytes;
};
constexpr OperandWidth operand_width(GemmKind kind) {
  switch (kind) {
    case GemmKind::kFp8:
      return {1, 1};
    case GemmKind::kInt8WeightOnly:
      return {2, 1};
    case GemmKind::kBf16:
      break;
  }
  return {2, 2};
}

/// A tile shape on this problem, before the split of k.
struct TileShape {
  double waves;    ///< Tiles per SM, as a fraction.
  double step_us;  ///< A k step at full throughput of one SM.
  double per_sm;   ///< Tiles that fit on an SM together and hide each other's latency.
  double area;
};

double q_norm(double x, double y, double q) {
  const double high = std::max(x, y), low = std::min(x, y);
  return high * std::pow(1 + std::pow(low / high, q), 1 / q);
}

double gemv_time_us(const GemmConstants& c, const GpuFacts& gpu, double m, double n, double k) {
  const double bytes = n * k + 2 * m * k + kOutputBytes * m * n;
  return c.gemv_us + std::max(bytes / (c.gemv_fraction * gpu.dram_bytes_per_us),
                              std::ceil(k / 512) * c.gemv_step_us);
}

}  // namespace

std::optional<GemmKind> gemm_kind(std::string_view dtype) {
  if (dtype == "bf16" || dtype == "bfloat16") return GemmKind::kBf16;
  if (dtype == "fp8") return GemmKind::kFp8;
  if (dtype == "int8_wo") return GemmKind::kInt8WeightOnly;
  return std::nullopt;
}

const char* to_string(GemmKind kind) {
  switch (kind) {
    case GemmKind::kBf16:
      return "bf16";
    case GemmKind::kFp8:
      return "fp8";
    case GemmKind::kInt8WeightOnly:
      return "int8_wo";
  }
  return "";
}

std::span<const ModelConstant<GemmConstants>> gemm_model_constants(GemmKind kind) {
  switch (kind) {
    case GemmKind::kFp8:
      return kFp8Constants;
    case GemmKind::kInt8WeightOnly:
      return kInt8Constants;
    case GemmKind::kBf16:
      break;
  }
  return kBf16Constants;
}

double gemm_time_us(const GemmConstants& c,
                    const GpuFacts& gpu,
                    GemmKind kind,
                    const GemmShape& shape) {
  const auto m = static_cast<double>(shape.m);
  const auto n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  if (kind == GemmKind::kInt8WeightOnly && m <= kGemvRows) return gemv_time_us(c, gpu, m, n, k);

  const OperandWidth width = operand_width(kind);
  const double peak = kind == GemmKind::kFp8 ? gpu.fp8_flop_per_us : gpu.bf16_flop_per_us;
  const double sm_flop_per_us = c.peak_fraction * peak / gpu.num_sms;
  const double feed_bytes_per_us = c.sm_feed_GBps * 1e3;

  std::array<TileShape, kTileSides.size() * kTileSides.size()> tiles;
  size_t num_tiles = 0;
  for (const double tile_m : kTileSides) {
    if (tile_m < std::min(c.least_tile_m, m)) continue;
    const double rows = std::ceil(m / tile_m) / gpu.num_sms;
    const double a_bytes = std::min(tile_m, m) * width.a_bytes;
    for (const double tile_n : kTileSides) {
      const double area = tile_m * tile_n;
      if (tile_n < std::min(c.least_tile_n, n) || area < kMinTileArea || area > kMaxTileArea) {
        continue;
      }
      const double mma_us = 2 * area * kStepK / sm_flop_per_us;
      const double feed_us =
          (a_bytes + std::min(tile_n, n) * width.b_bytes) * kStepK / feed_bytes_per_us;
      tiles[num_tiles++] = {.waves = rows * std::ceil(n / tile_n),
                            .step_us = std::max(mma_us, feed_us),
                            .per_sm = std::clamp(kMaxTileArea / area, 1.0, 8.0),
                            .area = area};
    }
  }

  const double a_bytes = m * k * width.a_bytes;
  const double b_bytes = n * k * width.b_bytes;
  const double c_bytes = m * n * kOutputBytes;
  const double l2 = c.l2_share * gpu.l2_bytes;
  const double again = (a_bytes + c.reuse_distance * (b_bytes + c_bytes)) / l2;
  const double weights_factor = l2_time_factor(again, c.l2_gain);
  const double read_rate = c.read_fraction * gpu.dram_bytes_per_us;
  const double read_us = (a_bytes * l2_time_factor((a_bytes + b_bytes + c_bytes) / l2, c.l2_gain) +
                          b_bytes * weights_factor) /
                         read_rate;
  const double write_us = c_bytes * weights_factor / (c.write_fraction * gpu.dram_bytes_per_us);
  const bool rereads = a_bytes + b_bytes > kRereadsFrom * gpu.l2_bytes;

  const double k_steps = k / kStepK;
  double best = std::numeric_limits<double>::infinity();
  for (const double split : kSplits) {
    if (split > 1 && (kind == GemmKind::kFp8 || k_steps < kMinStepsPerSplit * split)) break;
    const double steps = std::ceil(k_steps / split);
    double core_us = std::numeric_limits<double>::infinity();
    double area = 1;
    for (size_t i = 0; i < num_tiles; ++i) {
      const TileShape& t = tiles[i];
      const double exact = t.waves * split;
      const double shared = std::max(exact, 1.0);
      const double waves = shared + c.wave_rounding * (std::ceil(exact) - shared);
      const double throughput_us = waves * t.step_us * steps;
      const double latency_us = std::ceil(exact / t.per_sm) * steps * c.k_step_us;
      const double time_us = std::max(throughput_us, latency_us) + waves * c.wave_us;
      if (time_us < core_us) {
        core_us = time_us;
        area = t.area;
      }
    }
    double memory_us = read_us;
    if (split == 1 && rereads) {
      // Each wave of num_sms tiles, together about square, reads its operands anew.
      memory_us = std::max(memory_us,
                           m * n * k * (width.a_bytes + width.b_bytes) /
                               (std::sqrt(area * gpu.num_sms) * read_rate));
    }
    double time_us = q_norm(core_us, memory_us + write_us, c.norm_q);
    if (split > 1) {
      const double partial_bytes = 4 * split * m * n;
      time_us += c.split_us + partial_bytes / (c.split_fraction * gpu.dram_bytes_per_us);
    }
    best = std::min(best, time_us);
  }
  best += c.start_us;
  if (kind == GemmKind::kFp8) {
    const double quantise_bytes = 3 * m * k;  // bf16 in, fp8 out
    best +=
        c.quantise_us + std::max(m * c.quantise_row_ns * 1e-3,
                                 quantise_bytes / (c.quantise_fraction * gpu.dram_bytes_per_us));
  }
  return best;
}

}  // namespace meshwright
