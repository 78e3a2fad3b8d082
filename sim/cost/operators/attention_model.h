// Time of one attention layer's kernels on a GPU: prefill (many new tokens) and decode (one).
//
// Reads: constants (models/fits/attention.json) and GpuFacts. Feeds: sim/fit, `meshwright
// validate`.
//
// Prefill: causal flash attention. A CTA takes a block of queries of one head and walks the keys
// before them. A score element costs 4 D FLOP of the tensor cores and one exp, which
// overlap in part; the longest CTA is waited for at the end. A kernel before it rotates Q and K and
// appends K and V to the cache.
//
// Decode: a CTA takes one KV head of one sequence, or one of s splits of its cache, and streams it
// through one SM, s being the best power of two; a pass reduces the splits. When CTAs outnumber the
// SMs their fixed costs queue, while their streams overlap and are the memory system's. Core,
// memory and tensor-core time join in a q-norm.
//
// Ignored: layout and block size of a paged cache; Hopper's other kernel of decode at head dim 512.
#pragma once

#include <cstdint>
#include <span>

#include "sim/cost/operators/gpu_facts.h"
#include "sim/cost/operators/model_constant.h"

namespace meshwright {

/// Causal attention of `new_tokens` of each of `batch` sequences over themselves and the `cached`
/// ones before; bf16.
struct AttentionCall {
  int64_t batch = 1;
  int64_t new_tokens = 1;
  int64_t cached = 0;
  int64_t num_heads = 1;
  int64_t num_kv_heads = 1;
  int64_t head_dim = 128;
};

/// Constants of one device. Fractions are of the data sheet's figure.
struct PrefillConstants {
  double start_us = 8;
  double mma_fraction = 0.7;      ///< Of the tensor cores' peak.
  double exp_per_clock = 12;      ///< Softmax elements of one SM (16 exp of the hardware),
  double overlap_r = 2;           ///< and how they join the tensor cores' time; 1: no overlap.
  double wide_head_factor = 1.5;  ///< Of the time per element above head dim 256.
  double cta_us = 1.5;            ///< Fixed cost of a CTA.
  double tail_share = 1;          ///< Of half the longest CTA's time, waited for at the end.
  double least_query_block = 64;  ///< Queries of a CTA at least; the best power of two up to 256.
  double kv_head_us = 0.3;        ///< Per KV head on an SM.
  double io_fraction = 0.8;       ///< Of memory bandwidth: Q, K, V and O.
  double rope_fraction = 0.8;     ///< Of memory bandwidth: rotation and append,
  double append_weight = 2;       ///< where K and V count so often.
  double norm_q = 4;              ///< Joins core and memory time.
  double l2_share = 0.6;          ///< Of L2, that keeps Q, K, V between the kernels.
  double l2_gain = 2;             ///< L2 bandwidth over DRAM bandwidth.
  double sustained = 0.1;         ///< Slow-down of long kernels by the power limit,
  double sustained_us = 2e4;      ///< half of it reached at this length.
};

struct DecodeConstants {
  double start_us = 7;
  double kv_fraction = 0.85;  ///< Of memory bandwidth: the cache.
  double sm_feed_GBps = 80;   ///< Cache into one SM.
  double mma_fraction = 0.3;  ///< Of the tensor cores' peak.
  double cta_us = 3;          ///< Fixed cost of a CTA at head dim 128,
  double cta_width = 0.1;     ///< its share that grows with the head dim.
  double group_us = 0.25;     ///< Per 1024 elements of the queries that share a KV head.
  double split_us = 0.6;      ///< Reduction: start,
  double reduce_us = 0.2;     ///< and per split.
  double max_mha_split =
      256;  ///< Splits where each head has its own cache; 1: the kernel has none.
  double norm_q = 2;
  double l2_share = 0.6;
  double l2_gain = 2;
  double extra_us = 1;  ///< A further kernel of the engine for small batches of grouped heads.
};

/// Names, starts and bounds: 17 and 14 constants.
[[nodiscard]] std::span<const ModelConstant<PrefillConstants>> prefill_model_constants();
[[nodiscard]] std::span<const ModelConstant<DecodeConstants>> decode_model_constants();

/// Microseconds. Both allocate nothing and take well under 1 us.
[[nodiscard]] double prefill_time_us(const PrefillConstants& constants,
                                     const GpuFacts& gpu,
                                     const AttentionCall& shape);
/// Of one new token per sequence; `shape.new_tokens` is not read.
[[nodiscard]] double decode_time_us(const DecodeConstants& constants,
                                    const GpuFacts& gpu,
                                    const AttentionCall& shape);

}  // namespace meshwright
