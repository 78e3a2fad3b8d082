// Time of a collective whose group spans nodes: the domain's constants inside a node, a network's
// between them.
//
// A group of n ranks lies q to a node on k = n/q nodes. The q members of a node leave it through
// their share of its NICs side by side: together `nic_GBps` x q (closed_forms.h, nic_share, divides
// NICs among groups that communicate at the same time). NCCL's candidates, the fastest of which
// counts (src/graph/tuning.cc has the same forms with its own constants):
//
//   ring (LL, LL128, Simple): a + (steps - steps over the network) h + steps over it H
//                             + max(W/B, W_net/(q b_nic e f))
//   tree (all-reduce; Simple only without NVLS)
//                           : a + 2 ((q-1) h + log2(k) H) + max(2 S/B, m S/(q b_nic e f))
//   NVLS tree (all-reduce)  : a + 2 log2(k) H + D C u/R + max(S/(C u) t(u), m S/R),  R = q b_nic e
//   PAT (all-gather, reduce-scatter, one rank a node): a + log2(k) H + W_net/(0.75 b_nic e)
//
// m = 1 for two nodes (one sends up, the other down), 2 for more (double binary tree). f, the share
// of a NIC that a protocol's payload gets, is 1/2 for LL and 0.92 for LL128 (tuning.cc). W_net =
// f_op (n-1)/n S is the ring's traffic across a node's boundary. The NVLS tree works in chunks of u
// = 32, 64 or 128 KiB (64 at most on four nodes and more) over C = channels x q like the NVLS of
// one node, t(u) being its loop; D such loops fill the pipeline over the network, which is why its
// start-up grows with the message (two nodes on EFA: 110 us at 1 MiB, 345 at 64, 440 at 256).
//
// All-to-all: what leaves a node, S (n-q)/n per rank, against what stays. Ignored: rail-optimised
// switches (no distance between NICs), congestion, slow NICs.
#pragma once

#include "sim/cost/collectives/domain_time.h"

namespace meshwright {

struct NodesGroup {
  int num_ranks = 1;
  int ranks_per_node = 1;
  double line_rate_GBps = 0;  ///< Inside the node; 0: the generation's.
  double nic_GBps = 0;        ///< Per rank, line rate; 0: the network's.
  bool nvls = true;
};

/// Microseconds. Falls to domain_time_us for a group inside one node.
[[nodiscard]] double nodes_time_us(const NcclConstants& nccl,
                                   const LinkConstants& link,
                                   const NetworkConstants& network,
                                   CommOp op,
                                   double bytes,
                                   const NodesGroup& group);

}  // namespace meshwright
