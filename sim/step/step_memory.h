// Peak memory of one rank in closed form: model states by engine convention, activations by the
// tensors that autograd saves, logits, gathered layers, and what the allocator and libraries add.
//
// Reads: StepProblem and StepLayout. Feeds: "fits", the memory rows of validate, and the planner's
// search. Activations: Korthikanti et al. (arXiv:2205.05198), generalised to gated and grouped
// layers by summing the saved tensors; their formulas are the unit tests. The point estimate is
// what the framework reports (allocated, or reserved by its caching allocator); the upper bound is
// what a plan must leave room for.
#pragma once

#include "sim/step/step_inputs.h"

namespace meshwright {

/// Who keeps which copy of a parameter.
enum class StateConvention : uint8_t {
  kMegatron,       ///< BF16 weights, FP32 main gradients, FP32 master and moments: 18 B; 6 + 12/d.
  kDeepSpeed,      ///< FP16 weights and gradients, FP32 master and moments: the 16 B of the ZeRO
                   ///< paper; and 4 B that its optimizer casts the gradients of its shard to.
  kDeepSpeedBf16,  ///< The same with FP32 gradients accumulated beside the BF16 ones.
  kTorchFsdp,      ///< FP32 master sharded, BF16 gathered: 16/d and live layers.
  kFp32,           ///< FP32 throughout: 16 B; 8 + 8/d.
};

struct StepMemory {
  double weights_bytes = 0;
  double gradients_bytes = 0;
  double optimizer_bytes = 0;
  double activations_bytes = 0;
  double logits_bytes = 0;
  double gathered_bytes = 0;   ///< Unsharded weights and gradients alive at the peak.
  double workspace_bytes = 0;  ///< Of one layer's backward, and library buffers in the allocator.

  [[nodiscard]] double allocated_bytes() const {
    return weights_bytes + gradients_bytes + optimizer_bytes + activations_bytes + logits_bytes +
           gathered_bytes + workspace_bytes;
  }
};

/// Bytes that one layer of `block` saves for backward, for one micro-batch on one rank.
[[nodiscard]] double saved_activation_bytes(const StepProblem& problem,
                                            const ShardLayout& shard,
                                            const BlockShape& block);

/// Their mean over the model's layers.
[[nodiscard]] double mean_saved_bytes(const StepProblem& problem, const ShardLayout& shard);

/// Micro-batches (in units of whole stages) whose activations stage `rank` holds at its peak:
/// min(m, p - r) for 1F1B; interleaved adds (p - 1)/(p v) on the first stage.
[[nodiscard]] double micro_batches_in_flight(const StepLayout& layout, double rank);

/// States of `dense` and `experts` parameters of one rank, in bytes.
[[nodiscard]] StepMemory state_memory(StateConvention convention,
                                      const StepLayout& layout,
                                      double dense,
                                      double experts);

/// The fullest stage: the first, the second (whose layers may be more) or the last.
[[nodiscard]] StepMemory peak_memory(const StepProblem& problem,
                                     StateConvention convention,
                                     const StepLayout& layout);
/// Of the last stage alone.
[[nodiscard]] StepMemory last_stage_memory(const StepProblem& problem,
                                           StateConvention convention,
                                           const StepLayout& layout);

/// What nvidia-smi shows where the framework does not report its allocator: context and
/// communicators, and blocks that the caching allocator keeps.
[[nodiscard]] double device_memory(double allocated_bytes);

/// Share of the allocated bytes that a caching allocator holds beyond them and that the model
/// misses, and what libraries take from it.
inline constexpr double kAllocatorShare = 0.09;
inline constexpr double kLibraryWorkspaceBytes = 1.0e9;
/// Share of the published peaks that memory_upper_bound() holds for, at least.
inline constexpr double kMemoryBoundCoverage = 0.95;

/// What a framework may report where the point estimate is `allocated_bytes`. Communicators and the
/// device's context come on top: no framework reports them.
[[nodiscard]] double memory_upper_bound(double allocated_bytes);

}  // namespace meshwright
