// Textbook times of collectives in the alpha-beta model: oracles for the tests, bounds for the
// search.
//
// alpha: seconds per message; W: bytes per second of one rank in one direction; S: bytes of the
// full tensor; n ranks. Thakur, Rabenseifner, Gropp (2005); Chan et al. (2007). One rank costs
// zero in every form.
#pragma once

#include "sim/core/units.h"

namespace meshwright {

struct AlphaBeta {
  Seconds alpha;
  BytesPerSecond rate;
};

/// (n-1) alpha + (n-1)/n S/W; also reduce-scatter.
[[nodiscard]] Seconds ring_all_gather(Bytes payload, int num_ranks, AlphaBeta link);
/// Reduce-scatter and all-gather: twice the above.
[[nodiscard]] Seconds ring_all_reduce(Bytes payload, int num_ranks, AlphaBeta link);
/// 2 log2(n) alpha + 2 S/W: reduced up and broadcast down a tree, pipelined (n any; log2 rounded
/// up).
[[nodiscard]] Seconds tree_all_reduce(Bytes payload, int num_ranks, AlphaBeta link);
/// 2 log2(n) alpha + 2 (n-1)/n S/W, n a power of two.
[[nodiscard]] Seconds halving_doubling_all_reduce(Bytes payload, int num_ranks, AlphaBeta link);
/// (n-1) alpha + (n-1)/n S/W.
[[nodiscard]] Seconds pairwise_all_to_all(Bytes payload, int num_ranks, AlphaBeta link);
/// 2 alpha + S/W: once up and once down through a switch that reduces.
[[nodiscard]] Seconds in_switch_all_reduce(Bytes payload, int num_ranks, AlphaBeta link);

/// k nodes of q ranks: reduce-scatter inside, all-reduce of 1/q between, all-gather inside. The two
/// networks work side by side for `overlap` of the shorter.
struct HierarchicalTime {
  Seconds intra;
  Seconds inter;
  [[nodiscard]] Seconds total(double overlap) const;
};
[[nodiscard]] HierarchicalTime hierarchical_all_reduce(
    Bytes payload, int num_nodes, int ranks_per_node, AlphaBeta intra, AlphaBeta inter);

/// Share of a node's NICs that one group gets: `nics` of `rate` divided among the groups that
/// communicate at the same time, and at most one NIC per member of the group on that node.
[[nodiscard]] BytesPerSecond nic_share(BytesPerSecond rate,
                                       int nics,
                                       int concurrent_groups,
                                       int ranks_per_node);

}  // namespace meshwright
