// The values that the closed-form step model reads: device, links, framework, workload, layout.
//
// Reads: nothing. Feeds: price_shard() and evaluate_step(). Plain doubles: this is evaluated
// millions of times by the planner's search; units are in the names.
#pragma once

#include <cstdint>
#include <string>

#include "sim/step/model_shape.h"

namespace meshwright {

enum class GemmPrecision : uint8_t { kBf16, kFp8, kFp8Rowwise, kFp4 };
enum class AttentionKernel : uint8_t { kUnfused, kFlash };
enum class RecomputeKind : uint8_t {
  kNone,
  kCore,        ///< Attention core alone (Megatron "selective").
  kOps,         ///< Every second matmul and all elementwise (torchtitan "selective op").
  kHalfLayers,  ///< Full recompute of every second layer (torchtitan "selective 2").
  kFull,
};
enum class StepSchedule : uint8_t { kOneFOneB, kZeroBubble1, kZeroBubble2, kZeroBubbleV };

/// Data sheet, and fractions of it that kernels reach (models/fits/frameworks.json).
struct DeviceFacts {
  std::string name;
  double peak_bf16 = 0;  ///< FLOP/s, dense.
  double peak_fp8 = 0;
  double peak_fp4 = 0;
  double peak_fp32 = 0;
  double memory_bandwidth = 0;  ///< Bytes/s.
  double memory_bytes = 0;
  double num_sms = 1;
  double nvlink_bandwidth = 0;  ///< Bytes/s, one direction.
  double nvlink_domain = 8;     ///< Devices that share it.
  // Fitted:
  double gemm_fraction = 0.7;  ///< Of peak_bf16, by large matmuls.
  double fp8_fraction = 0.7;   ///< Of peak_fp8.
  double fp4_fraction = 0.5;
  double nvlink_efficiency = 0.8;
};

/// What a framework on a device class reaches, and how much it hides.
struct FrameworkProfile {
  std::string name;
  double flash_forward = 0.5;     ///< Of peak_bf16.
  double flash_backward = 0.5;    ///< Backward's rate over forward's.
  double kernel_gap_s = 4e-6;     ///< Device time per matmul that no launch ahead hides.
  double host_norm = 3.4;         ///< Sharpness of max(device, host) over one layer.
  double host_layer_s = 0;        ///< To issue the forward of one layer.
  double host_moe_s = 0;          ///< More of it for a layer of experts.
  double host_backward = 2;       ///< Backward's share of that.
  double host_collective_s = 0;   ///< To issue one collective.
  double host_micro_batch_s = 0;  ///< Start of one micro-batch.
  double host_step_s = 0;         ///< Optimizer's own issue, logging, data.
  double tp_exposed = 1;          ///< Of tensor-parallel collectives.
  double tp_async_exposed = 1;    ///< Same, with async tensor parallelism.
  double ep_exposed = 1;          ///< Of expert all-to-all inside the NVLink domain.
  double ep_nic_exposed = 1;      ///< Of what crosses the NICs.
  double cp_exposed = 0.3;
  double pp_exposed = 0.27;
  double dp_exposed = 1;           ///< Of gradient reduction that could hide nowhere.
  double dp_hidden_share = 0;      ///< Of the last backward (and the first forward) that hides it.
  double fsdp_interference = 0.3;  ///< Of the shorter of compute and gathers, that still shows.
  double accumulate_bytes = 0;     ///< Per parameter and micro-batch, to add up gradients unfused.
  double zero3_nic_efficiency = 0.85;  ///< Of the NIC, by fully sharded gathers.
  double zero_nic_efficiency = 0.85;   ///< Of the NIC, by reduction under ZeRO-1 and 2.
  double nic_efficiency = 0.85;
  double gradient_bytes = 2;        ///< Bytes per element that gradient reduction moves, each way.
  double elementwise = 1;           ///< Bytes moved, over the eager fused kernels' count.
  double elementwise_compiled = 1;  ///< The same under torch.compile.
  double score_traffic = 0.73;      ///< Bytes per score over 14 and 20.
  double loss_bytes_per_logit = 34;
  double unfused_fraction = 0.5;  ///< Of peak_bf16, by the two attention matmuls when not fused.
  double memory_fraction = 0.8;   ///< Of memory bandwidth.
  double cast_traffic = 1;        ///< FP8 casts over 3 bytes per quantised operand.
  double rowwise_penalty = 1;     ///< FP8 with row-wise scales, on matmuls.
  double moe_gemm = 0.57;         ///< Grouped matmul's rate over a dense one's.
  double moe_traffic = 1;         ///< Permutation bytes over 8 h top_k per token.
  double mamba_traffic = 1;       ///< Scan and convolution bytes over 40 per inner channel.
  double collective_alpha_s = 31e-6;
  double straggle_per_doubling = 0.0067;
  double spread = 0.15;         ///< 80 % of steps lie within exp(+-spread) of the prediction.
  double spread_assumed = 1.3;  ///< Wider by this where inputs are assumed, not given.
  double spread_experts = 2.0;  ///< Wider by this for models with experts.
  double bubble_zb1 = 0.4;
  double bubble_zb2 = 0.03;
};

struct StepWorkload {
  double seq = 0;
  double global_batch = 0;  ///< Sequences.
  GemmPrecision precision = GemmPrecision::kBf16;
  AttentionKernel attention = AttentionKernel::kFlash;
  RecomputeKind recompute = RecomputeKind::kNone;
  bool sequence_parallel = false;
  bool async_tp = false;
  bool compiled = false;
  bool fused_loss = false;  ///< Cross entropy in one kernel, gradient over the logits.
  bool lora = false;        ///< Base weights frozen: no weight gradients.
  bool offload = false;     ///< Optimizer on the host.
  /// Of attention's pairs, those inside documents that are packed into a sequence.
  double packed = 1;
};

struct LinkFacts {
  double devices_per_node = 8;
  double nic_bandwidth = 25e9;   ///< Bytes/s per device, one direction.
  double host_bandwidth = 12e9;  ///< Bytes/s per device to the host's memory, one direction.
};

/// The network of an axis: the one that its ranks' places give, or one that was chosen for it.
enum class NetworkTier : uint8_t { kByPlace, kNvlink, kNic };

/// How tensor-parallel collectives run beside matmuls: as the framework was measured; one after the
/// other; a ring of p2p steps behind the pieces of a matmul; in a few pieces, each behind the
/// matmul of the one before (Calculon's three; SC'23, doi:10.1145/3581784.3607102).
enum class TpOverlap : uint8_t { kFramework, kNone, kRing, kPipe };

/// How gradient reduction runs: as the framework was measured; after the step; behind the last
/// backward.
enum class DpOverlap : uint8_t { kFramework, kNone, kBackward };

/// States that live in the host's memory between their uses.
struct OffloadChoice {
  bool weights = false, activations = false, optimizer = false;
};

/// What fixes the cost of one block on one rank.
struct ShardLayout {
  double tp = 1, cp = 1, ep = 1;
  double expert_tp = 1;  ///< Ranks that an expert's width is split over; 1: ep runs over tp too.
  double micro_batch = 1;
  NetworkTier tp_tier = NetworkTier::kByPlace;
  TpOverlap tp_overlap = TpOverlap::kFramework;
  bool regathers = true;  ///< Under sequence parallelism, gathers matmul inputs again for backward.
  int zero = 0;
  double dp = 1;  ///< Only where zero is 3: the group that gathers each layer.
};

struct StepLayout {
  ShardLayout shard;
  double pp = 1, vpp = 1, dp = 1;
  int zero = 0;
  StepSchedule schedule = StepSchedule::kOneFOneB;
  double micro_batches = 1;
  NetworkTier pp_tier = NetworkTier::kByPlace;
  NetworkTier dp_tier = NetworkTier::kByPlace;
  DpOverlap dp_overlap = DpOverlap::kFramework;
  bool scatters_hops = true;  ///< Each tensor rank sends its part of an activation to its peer.
  OffloadChoice offload;
  /// Layers of the fullest middle, first and last stage; see split_layers().
  double layers_max = 0, layers_first = 0, layers_last = 0;
  /// What does not divide is laid out by hand, so that ends and middle take equally long.
  bool balanced = false;
};

/// The problem's facts, which no layout changes.
struct StepProblem {
  ModelShape model;
  DeviceFacts device;
  LinkFacts links;
  FrameworkProfile framework;
  StepWorkload work;
};

}  // namespace meshwright
