// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/collective_model.h"

#include <algorithm>

#include "sim/cost/collectives/nodes_time.h"

namespace meshwright {
namespace {

constexpr double kBytesPerGB = 1e9;
constexpr double kMicrosecond = 1e-6;

/// What collectives get of a link: beside computation less than alone.
double line_rate_GBps(const LinkSpec& link) {
  return link.bandwidth.v * link.efficiency / kBytesPerGB;
}

/// Where only one of the two links names its generation: that one as alpha and beta of the Simple
/// protocol, for the ring beside the other.
ClusterSpec as_ring_links(ClusterSpec c,
                          const LinkConstants* link,
                          const NetworkConstants* network) {
  if (link != nullptr) {
    c.intra_node.alpha = Seconds{link->simple.hop_us * kMicrosecond};
    c.intra_node.base = Seconds{(link->base_us + link->simple.base_us) * kMicrosecond};
    c.intra_node.efficiency *= link->simple.rate_GBps / link->line_rate_GBps;
  }
  if (network != nullptr) {
    c.inter_node.alpha = Seconds{network->simple_hop_us * kMicrosecond};
    c.inter_node.efficiency *= network->efficiency;
  }
  return c;
}

}  // namespace

Seconds link_collective_time(const ClusterSpec& cluster,
                             CommOp op,
                             Bytes payload,
                             const GroupShape& shape) {
  const CollectiveConstants& constants = collective_constants();
  const LinkConstants* link = constants.link(cluster.intra_node.generation);
  const NetworkConstants* network = constants.network(cluster.inter_node.generation);
  if (link != nullptr && shape.inside_node()) {
    const double t = domain_time_us(constants.nccl,
                                    *link,
                                    op,
                                    payload.v,
                                    {shape.num_ranks, line_rate_GBps(cluster.intra_node)});
    return Seconds{t * kMicrosecond};
  }
  if (link == nullptr && network == nullptr) {
    return ring_collective_time(cluster, op, payload, shape);
  }
  if (link == nullptr || network == nullptr) {
    return ring_collective_time(as_ring_links(cluster, link, network), op, payload, shape);
  }
  const NodesGroup group{.num_ranks = shape.num_ranks,
                         .ranks_per_node = shape.ranks_per_node,
                         .line_rate_GBps = line_rate_GBps(cluster.intra_node),
                         .nic_GBps = line_rate_GBps(cluster.inter_node)};
  return Seconds{nodes_time_us(constants.nccl, *link, *network, op, payload.v, group) *
                 kMicrosecond};
}

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
