// Collective time on a ring (alpha-beta), from the links of a cluster or from measured lines.
//
// Ring over n ranks and S bytes of the full tensor (Thakur et al. 2005): all-gather and
// reduce-scatter take (n-1) alpha + (n-1)/n S/W, all-reduce twice that. A group over several nodes
// is paced by the slower of NVLink and the NICs of its members on a node, which carry the ring's
// traffic side by side.
#pragma once

#include "sim/cost/cost_model.h"

namespace meshwright {

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
