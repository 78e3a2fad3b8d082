// From a rank's requested bytes to what its device must have free: the verdict "fits".
//
// Reads: the replayed peak, the layout. Feeds: simulate(), planner, explain. CPU ranks: the peak is
// exact to the byte (replay.h) and is the bound. GPUs: the allocator's share and libraries'
// workspace are those that hold for 95 of 100 published peaks (sim/step/step_memory.h, judged by
// `meshwright validate`); communicators are counted, each with the buffers that NCCL takes. The
// device's context is not in the bound: DeviceSpec::reserved sets it aside.
//
// First step and saving rest on assumptions, not on measurements: moments are made by the first
// optimizer step (Megatron-LM issue 640: the last stage peaks higher from iteration 2 on); a save
// copies to pinned host memory what the rank will write, which is its shard of the optimizer's
// states and its part of the weights among the ranks that hold the same ones.
#pragma once

#include "sim/memory/replay.h"
#include "sim/report/memory_bound.h"

namespace meshwright {

/// Groups of ranks that communicate, of the rank that has most: one communicator per distinct list
/// of ranks, and one per pipeline neighbour.
[[nodiscard]] int communicators_of_rank(const Plan& plan);

/// Buffers of one communicator over `num_ranks` ranks (NVIDIA/nccl issues 964 and 864: 544 MiB
/// for two GPUs, 688 MiB for more).
[[nodiscard]] Bytes communicator_bytes(int num_ranks);

/// The upper bound alone: grows with `peak`, so that a lower bound of the peak gives a lower bound
/// of it.
[[nodiscard]] Bytes memory_upper_bound(const Plan& plan, Bytes peak);

/// All terms of the rank with this profile.
[[nodiscard]] MemoryBound memory_bound(const Plan& plan, const MemoryProfile& profile);

}  // namespace meshwright
