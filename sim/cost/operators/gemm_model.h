// Time of one matmul C[m,n] = A[m,k] B[k,n] on a GPU: A activations, B weights.
//
// Reads: GemmConstants (models/fits/gemm.json) and GpuFacts. Feeds: sim/fit, `meshwright validate`.
//
// A library picks an output tile Tm x Tn and a split s of the reduction; the model takes the best
// of a fixed list. The ceil(m/Tm) ceil(n/Tn) s tiles are dealt to the SMs; each walks its k steps
// of 64, a step as long as the slowest of the tensor cores, the operand feed of one SM (L2 to
// shared memory) and its latency. Meanwhile the memory system streams A, B and C: activations just
// written are found in L2 as far as they fit, weights only when they are used again before other
// traffic has pushed them out. Core and memory time join in a q-norm. fp8 adds the kernel that
// quantises A; weight-only int8 has a CUDA-core kernel of its own for a few rows (m <= 8).
//
// Ignored: clock and power state (large b200 and gb200 rows differ by 20 % without a rule in their
// shape), and a library's bad choices: the best tile is optimistic there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sim/cost/operators/gpu_facts.h"
#include "sim/cost/operators/model_constant.h"

namespace meshwright {

enum class GemmKind {
  kBf16,
  kFp8,             ///< Activations quantised on the fly, fp8 weights.
  kInt8WeightOnly,  ///< bf16 activations and arithmetic, int8 weights.
};

/// "bf16" or "bfloat16", "fp8", "int8_wo"; nothing for another.
[[nodiscard]] std::optional<GemmKind> gemm_kind(std::string_view dtype);
/// "bf16", "fp8", "int8_wo".
[[nodiscard]] const char* to_string(GemmKind kind);

struct GemmShape {
  int64_t m = 1, n = 1, k = 1;
};

/// Constants of one device and kind. Fractions are of the data sheet's figure.
struct GemmConstants {
  double start_us = 2;         ///< Launch to first instruction, and drain.
  double peak_fraction = 0.8;  ///< Of the tensor cores, inside a tile's k loop.
  double read_fraction = 0.85;
  double write_fraction = 0.7;
  double sm_feed_GBps = 100;  ///< Operands into one SM.
  double k_step_us = 0.08;    ///< Latency of a k step.
  double wave_us = 0.3;       ///< Prologue and epilogue of a tile.
  double wave_rounding =
      0.1;                ///< 1: whole waves; 0: the last wave is shared (persistent, stream-k).
  double norm_q = 2.3;    ///< Joins core and memory time; the larger, the better they overlap.
  double l2_share = 0.9;  ///< Of L2, that keeps data for a later use.
  double l2_gain = 2;     ///< L2 bandwidth over DRAM bandwidth.
  double reuse_distance = 100;  ///< Matmuls of this size until B's and C's memory is used again.
  double least_tile_m = 16;     ///< Smallest tile that the library has.
  double least_tile_n = 16;
  double split_us = 2.5;           ///< Reduction of split-k partial sums: start,
  double split_fraction = 10;      ///< and bandwidth.
  double quantise_us = 1.2;        ///< fp8: the kernel that quantises A: start,
  double quantise_row_ns = 7;      ///< per row,
  double quantise_fraction = 0.3;  ///< and bandwidth.
  double gemv_us = 8;              ///< int8, m <= 8: start,
  double gemv_fraction = 0.75;     ///< bandwidth,
  double gemv_step_us = 0.3;       ///< per 512 elements of k.
};

/// Names, starts and bounds of the constants that `kind` uses: 16 of bf16, 17 of fp8, 19 of int8.
[[nodiscard]] std::span<const ModelConstant<GemmConstants>> gemm_model_constants(GemmKind kind);

/// Microseconds. Allocates nothing; about 3 us per call.
[[nodiscard]] double gemm_time_us(const GemmConstants& constants,
                                  const GpuFacts& gpu,
                                  GemmKind kind,
                                  const GemmShape& shape);

}  // namespace meshwright
