// Collective time from the links of a cluster, or from measured lines.
//
// Links of a known generation: NCCL's protocols with that generation's constants
// (sim/cost/collectives). Others: a ring over n ranks and S bytes of the full tensor (Thakur et al.
// 2005): all-gather and reduce-scatter take (n-1) alpha + (n-1)/n S/W, all-reduce twice that,
// all-to-all as much as all-gather. A group over several nodes is paced by the slower of NVLink and
// the NICs of its members on a node, which carry the ring's traffic side by side.
#pragma once

#include "sim/cost/cost_model.h"

namespace meshwright {

/// By the generation of the links where they name one, else by ring_collective_time.
[[nodiscard]] Seconds link_collective_time(const ClusterSpec& cluster,
                                           CommOp op,
                                           Bytes payload,
                                           const GroupShape& shape);

[[nodiscard]] Seconds ring_collective_time(const ClusterSpec& cluster,
                                           CommOp op,
                                           Bytes payload,
                                           const GroupShape& shape);

/// alpha + S beta of the measured group size, or of the nearest ones: alpha and beta are
/// interpolated linearly in the group size and held beyond it.
[[nodiscard]] Seconds measured_collective_time(const Calibration& calibration,
                                               CommOp op,
                                               Bytes payload,
                                               int num_ranks);

}  // namespace meshwright
