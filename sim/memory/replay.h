// Memory of one rank, by replaying the lifetimes of its Program's tensors.
//
// Reads: operator lists (what is allocated and released at each operator), the step's program (in
// which order), the placement table (what is resident). Feeds: the verdict "fits",
// StepReport::memory. Counts requested bytes: exact for the CPU executor on one thread (tests hold
// it to 0 bytes); allocator rounding, fragmentation and the device context are not in it
// (DeviceSpec::reserved is set aside for them).
#pragma once

#include <array>
#include <vector>

#include "sim/core/units.h"
#include "sim/graph/model_graph.h"
#include "sim/report/step_report.h"
#include "sim/schedule/placement.h"
#include "sim/schedule/program.h"

namespace meshwright {

/// What walking one operator list does to the bytes alive.
struct ListFootprint {
  double delta = 0;  ///< After minus before.
  double peak = 0;   ///< Highest, above before.
};

/// Footprints of the lists of each kind of block.
struct BlockFootprints {
  ListFootprint forward, recompute, backward, backward_input, backward_weight;
};
struct StageFootprints {
  BlockFootprints blocks[kNumBlockKinds];
  double boundary = 0;  ///< Bytes of one micro-batch's activation between stages.
};
[[nodiscard]] StageFootprints footprints(const ModelGraph& graph);

struct MemoryProfile {
  Bytes peak;
  std::array<Bytes, kNumMemoryTerms> at_peak{};
  [[nodiscard]] Bytes operator[](MemoryTerm t) const { return at_peak[static_cast<size_t>(t)]; }
};

/// Bytes of one stored weight of a bucket.
[[nodiscard]] double weight_bytes(const Plan& plan, const Bucket& bucket);

/// Resident bytes of a rank: weights, gradients, optimizer state, tables.
[[nodiscard]] MemoryProfile resident_memory(const Plan& plan, const RankPlacement& placement);

/// Peak of a rank of pipeline rank `stage` that holds `placement`: what is resident, and what the
/// program adds to it.
[[nodiscard]] MemoryProfile replay_stage(const Plan& plan,
                                         const StageFootprints& footprints,
                                         const Program& program,
                                         const RankPlacement& placement,
                                         int stage);

/// The whole of it for one rank.
[[nodiscard]] MemoryProfile replay_memory(const Plan& plan, const Program& program, int rank);

}  // namespace meshwright
