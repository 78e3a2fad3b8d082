// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/collectives/closed_forms.h"

#include <algorithm>
#include <cmath>

#include "sim/core/check.h"

namespace meshwright {
namespace {

/// (n-1)/n of the payload: what a rank sends in a ring or to its peers.
Seconds all_but_own(Bytes payload, int n, AlphaBeta link) {
  return payload * (static_cast<double>(n - 1) / n) / link.rate;
}

double levels(int n) { return std::ceil(std::log2(static_cast<double>(n))); }

}  // namespace

Seconds ring_all_gather(Bytes payload, int n, AlphaBeta link) {
  return link.alpha * static_cast<double>(n - 1) + all_but_own(payload, n, link);
}

Seconds ring_all_reduce(Bytes payload, int n, AlphaBeta link) {
  return ring_all_gather(payload, n, link) * 2.0;
}

Seconds tree_all_reduce(Bytes payload, int n, AlphaBeta link) {
  if (n <= 1) return Seconds{};
  return link.alpha * (2 * levels(n)) + payload / link.rate * 2.0;
}

Seconds halving_doubling_all_reduce(Bytes payload, int n, AlphaBeta link) {
  MW_CHECK(n >= 1 && (n & (n - 1)) == 0, "halving and doubling needs a power of two");
  return link.alpha * (2 * levels(n)) + all_but_own(payload, n, link) * 2.0;
}

Seconds pairwise_all_to_all(Bytes payload, int n, AlphaBeta link) {
  return ring_all_gather(payload, n, link);
}

Seconds in_switch_all_reduce(Bytes payload, int n, AlphaBeta link) {
  if (n <= 1) return Seconds{};
  return link.alpha * 2.0 + payload / link.rate;
}

Seconds HierarchicalTime::total(double overlap) const {
  return std::max(intra, inter) + std::min(intra, inter) * (1 - overlap);
}

HierarchicalTime hierarchical_all_reduce(
    Bytes payload, int num_nodes, int ranks_per_node, AlphaBeta intra, AlphaBeta inter) {
  return {ring_all_gather(payload, ranks_per_node, intra) * 2.0,
          ring_all_reduce(payload / static_cast<double>(ranks_per_node), num_nodes, inter)};
}

BytesPerSecond nic_share(BytesPerSecond rate, int nics, int concurrent_groups, int ranks_per_node) {
  MW_CHECK(nics >= 1 && concurrent_groups >= 1 && ranks_per_node >= 1);
  return rate * std::min(static_cast<double>(nics) / concurrent_groups,
                         static_cast<double>(ranks_per_node));
}

}  // namespace meshwright
