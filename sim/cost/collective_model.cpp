// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/collective_model.h"

#include <algorithm>

namespace meshwright {

Seconds ring_collective_time(const ClusterSpec& cluster,
                             CommOp op,
                             Bytes payload,
                             const GroupShape& shape) {
  if (shape.num_ranks <= 1) return Seconds{};
  const bool inside = shape.inside_node();
  const LinkSpec& intra = cluster.intra_node;
  const LinkSpec& inter = cluster.inter_node;
  const double intra_rate = intra.bandwidth.v * intra.efficiency;
  if (op == CommOp::kSendRecv) {
    const LinkSpec& link = inside ? intra : inter;
    return link.base + link.alpha + payload / BytesPerSecond{link.bandwidth.v * link.efficiency};
  }
  const double rate =
      inside ? intra_rate
             : std::min(intra_rate, inter.bandwidth.v * inter.efficiency * shape.ranks_per_node);
  const double n = shape.num_ranks;
  const double nodes = inside ? 1 : n / shape.ranks_per_node;
  // Of the n-1 steps of a ring, nodes-1 cross a NIC; the latencies of the others are NVLink's.
  const Seconds latency =
      intra.alpha * (n - nodes) + (inside ? Seconds{} : inter.alpha * (nodes - 1));
  const Seconds once = latency + payload * ((n - 1) / n) / BytesPerSecond{rate};
  const Seconds base = inside ? intra.base : inter.base;
  return base + once * (op == CommOp::kAllReduce ? 2.0 : 1.0);
}

Seconds measured_collective_time(const Calibration& calibration,
                                 CommOp op,
                                 Bytes payload,
                                 int num_ranks) {
  if (num_ranks <= 1) return Seconds{};
  const CollectiveFit* below = nullptr;
  const CollectiveFit* above = nullptr;
  for (const CollectiveFit& f : calibration.collectives) {
    if (f.op != op) continue;
    if (f.group_size <= num_ranks && (below == nullptr || f.group_size > below->group_size))
      below = &f;
    if (f.group_size >= num_ranks && (above == nullptr || f.group_size < above->group_size))
      above = &f;
  }
  MW_CHECK(below != nullptr || above != nullptr, "the calibration has no line for a collective");
  if (below == nullptr) below = above;
  if (above == nullptr) above = below;
  const double span = above->group_size - below->group_size;
  const double t = span > 0 ? (num_ranks - below->group_size) / span : 0.0;
  const double alpha = below->alpha_s + t * (above->alpha_s - below->alpha_s);
  const double beta =
      below->beta_s_per_byte + t * (above->beta_s_per_byte - below->beta_s_per_byte);
  return Seconds{alpha + payload.v * beta};
}

}  // namespace meshwright
