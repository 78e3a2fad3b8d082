// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/collectives/nodes_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace meshwright {
namespace {

constexpr double kBytesPerUsAtGBps = 1e3;
constexpr double kTreeKiB = 1024;
/// Payload's share of a NIC (NVIDIA/nccl src/graph/tuning.cc): an LL line is half flags.
constexpr double kLlShare = 0.5;
constexpr double kLl128Share = 0.92;
constexpr double kPatShare = 0.75;

enum class Protocol { kLl, kLl128, kSimple };

/// One protocol inside a node and on the network.
struct Path {
  ProtocolConstants inside;
  double hop_us = 0;  ///< Over the network.
  double nic_share = 1;
  Protocol protocol = Protocol::kSimple;
};

/// The group's sizes in the units of the formulas.
struct Spread {
  double ranks, per_node, nodes;
  double scale;     ///< Of the rates inside a node.
  double nic_GBps;  ///< Reached by one rank.
  double base_us;

  [[nodiscard]] double levels() const { return std::ceil(std::log2(nodes)); }
  /// Through all NICs of the group on one node.
  [[nodiscard]] double network_us(double bytes, double share) const {
    return bytes / (per_node * nic_GBps * share * kBytesPerUsAtGBps);
  }
  [[nodiscard]] double inside_us(double bytes, double rate_GBps) const {
    return bytes / (rate_GBps * scale * kBytesPerUsAtGBps);
  }
};

double ring_over_nodes_us(
    const LinkConstants& link, const Path& path, CommOp op, double bytes, const Spread& g) {
  const double passes = ring_passes(op);
  const double on_network = passes * (g.nodes - 1);
  const double inside = passes * (g.ranks - 1) - on_network;
  const double moved = bytes * (passes * (g.ranks - 1) + link.local_copy) / g.ranks;
  const double crossing = bytes * passes * (g.ranks - 1) / g.ranks;
  return g.base_us + path.inside.base_us + inside * path.inside.hop_us + on_network * path.hop_us +
         std::max(g.inside_us(moved, path.inside.rate_GBps),
                  g.network_us(crossing, path.nic_share));
}

/// Times the tensor that crosses a NIC in each direction.
double tree_passes(const Spread& g) { return g.nodes <= 2 ? 1 : 2; }

double tree_us(const Path& path, double bytes, const Spread& g) {
  const double inside = g.per_node > 1 ? g.inside_us(2 * bytes, path.inside.rate_GBps) : 0.0;
  return g.base_us + path.inside.base_us +
         2 * ((g.per_node - 1) * path.inside.hop_us + g.levels() * path.hop_us) +
         std::max(inside, g.network_us(tree_passes(g) * bytes, path.nic_share));
}

/// Message size from which NCCL takes twice `chunk` (src/enqueue.cc, NVLS_TREE).
double tree_next_chunk_from(double chunk, double concurrent, double largest) {
  if (chunk >= largest) return std::numeric_limits<double>::infinity();
  return (chunk < 64 * kTreeKiB ? 1 : 4) * concurrent * 2 * chunk;
}

double nvls_tree_us(const LinkConstants& link,
                    const NetworkConstants& network,
                    double bytes,
                    const Spread& g) {
  const double concurrent = link.nvls.channels * g.per_node;
  const double largest = (g.nodes >= 4 ? 64 : 128) * kTreeKiB;
  double t = 0;
  double from = 0;
  for (double chunk = 32 * kTreeKiB; chunk <= largest && from <= bytes; chunk *= 2) {
    from = tree_next_chunk_from(chunk, concurrent, largest);
    const double upto = std::min(bytes, from);
    const double loop_bytes = concurrent * chunk;
    const double inside = upto / loop_bytes * nvls_loop_us(link, concurrent, chunk, g.scale);
    const double between = g.network_us(tree_passes(g) * upto, 1);
    t = std::max(t,
                 g.base_us + 2 * g.levels() * network.simple_hop_us +
                     network.fill_loops * g.network_us(loop_bytes, 1) + std::max(inside, between));
  }
  return t;
}

double pat_us(const Path& path, double bytes, const Spread& g) {
  return g.base_us + path.inside.base_us + g.levels() * path.hop_us +
         g.network_us(bytes * (g.ranks - 1) / g.ranks, kPatShare);
}

double all_to_all_us(const LinkConstants& link, double hop_us, double bytes, const Spread& g) {
  const AllToAllConstants& a = link.all_to_all;
  const double inside =
      g.inside_us(bytes * (g.per_node - 1 + a.local_copy) / g.ranks, a.simple_rate_GBps);
  const double leaving = bytes * (g.ranks - g.per_node) / g.ranks;  // of each rank, by its own NIC
  return a.base_us + (g.ranks - 1) * a.peer_us + hop_us +
         std::max(inside, g.network_us(leaving * g.per_node, 1));
}

}  // namespace

double nodes_time_us(const NcclConstants& nccl,
                     const LinkConstants& link,
                     const NetworkConstants& network,
                     CommOp op,
                     double bytes,
                     const NodesGroup& group) {
  if (group.ranks_per_node >= group.num_ranks) {
    return domain_time_us(
        nccl, link, op, bytes, {group.num_ranks, group.line_rate_GBps, group.nvls});
  }
  const double nic = group.nic_GBps > 0 ? group.nic_GBps : network.line_rate_GBps;
  const Spread g{
      .ranks = static_cast<double>(group.num_ranks),
      .per_node = static_cast<double>(group.ranks_per_node),
      .nodes = static_cast<double>(group.num_ranks) / group.ranks_per_node,
      .scale = group.line_rate_GBps > 0 ? group.line_rate_GBps / link.line_rate_GBps : 1.0,
      .nic_GBps = nic * network.efficiency,
      .base_us = link.base_us};
  const std::array<Path, 3> paths{
      Path{link.ll, network.ll_hop_us, kLlShare, Protocol::kLl},
      Path{link.ll128, network.ll_hop_us * nccl.ll128_hop_over_ll, kLl128Share, Protocol::kLl128},
      Path{link.simple, network.simple_hop_us, 1, Protocol::kSimple}};
  const Path& simple = paths.back();

  if (op == CommOp::kSendRecv) {
    return g.base_us + std::min(network.ll_hop_us + g.network_us(bytes * g.per_node, kLlShare),
                                network.simple_hop_us + g.network_us(bytes * g.per_node, 1));
  }
  if (op == CommOp::kAllToAll) return all_to_all_us(link, simple.hop_us, bytes, g);

  const bool in_switch = op == CommOp::kAllReduce && group.nvls && link.nvls.channels > 0 &&
                         group.ranks_per_node >= nccl.nvls_min_ranks;
  double best = std::numeric_limits<double>::infinity();
  for (const Path& path : paths) {
    if (path.inside.rate_GBps <= 0 || (path.protocol == Protocol::kLl128 && !network.ll128)) {
      continue;
    }
    best = std::min(best, ring_over_nodes_us(link, path, op, bytes, g));
    // Where switches reduce, NCCL's tree for large messages is the one through them.
    const bool tree = !(in_switch && path.protocol == Protocol::kSimple);
    if (op == CommOp::kAllReduce && tree) best = std::min(best, tree_us(path, bytes, g));
  }
  if (op != CommOp::kAllReduce && group.ranks_per_node == 1) {
    best = std::min(best, pat_us(simple, bytes, g));
  }
  if (in_switch) best = std::min(best, nvls_tree_us(link, network, bytes, g));
  return best;
}

}  // namespace meshwright
