// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/memory_bound.h"

#include <algorithm>
#include <vector>

#include "sim/mesh/state_bytes.h"
#include "sim/step/step_memory.h"

namespace meshwright {
namespace {

constexpr double kMebibyte = 1048576.0;

/// Ranks of each distinct group of the rank that has most of them.
std::vector<int> group_sizes(const Plan& plan) {
  const Layout& l = plan.layout();
  const int world = plan.world_size();
  std::vector<int> sizes;
  const auto add = [&](int ranks) {
    if (ranks > 1 && ranks < world) sizes.push_back(ranks);
  };
  if (world > 1) sizes.push_back(world);
  add(l.tp);
  add(l.replicas());
  if (l.cp != l.replicas()) add(l.cp);
  if (l.shards() != l.replicas() && l.shards() != l.cp) add(l.shards());
  if (l.dp_replicate != l.replicas()) add(l.dp_replicate);
  if (plan.model().moe && l.ep > 1) {
    add(l.ep);
    add(l.expert_replicas());
  }
  if (l.pp > 1) {
    // A middle rank talks to two neighbours; an end rank to one, and over a tied table to the other
    // end.
    const int pairs = l.pp > 2 ? 2 : 1;
    const int ends = plan.model().tied_embeddings ? 2 : 1;
    for (int i = 0; i < std::max(pairs, ends); ++i) sizes.push_back(2);
  }
  return sizes;
}

Bytes communicator_buffers(const Plan& plan) {
  Bytes sum;
  for (const int ranks : group_sizes(plan)) sum += communicator_bytes(ranks);
  return sum;
}

}  // namespace

int communicators_of_rank(const Plan& plan) { return static_cast<int>(group_sizes(plan).size()); }

Bytes communicator_bytes(int num_ranks) {
  if (num_ranks <= 1) return Bytes{};
  return Bytes{(num_ranks == 2 ? 544 : 688) * kMebibyte};
}

Bytes memory_upper_bound(const Plan& plan, Bytes peak) {
  if (plan.cluster().is_local()) return peak;
  return Bytes{memory_upper_bound(peak.v)} + communicator_buffers(plan);
}

MemoryBound memory_bound(const Plan& plan, const MemoryProfile& p) {
  const Layout& l = plan.layout();
  const bool local = plan.cluster().is_local();
  const Bytes states =
      p[MemoryTerm::kWeights] + p[MemoryTerm::kOptimizer] + p[MemoryTerm::kGradients];
  MemoryBound b{.upper = memory_upper_bound(plan, p.peak), .first_step_peak = p.peak};
  // Ranks that hold the same bytes share the writing. Of experts there are fewer copies: with them
  // the snapshot is an upper bound.
  const int copies = plan.model().moe ? std::min(l.replicas(), l.expert_replicas()) : l.replicas();
  const int shards = plan.model().moe ? std::min(l.shards(), l.expert_shards()) : l.shards();
  const auto share = [&](MemoryTerm term, int sharded_from) {
    return p[term] *
           (l.zero_stage >= sharded_from ? static_cast<double>(shards) / copies : 1.0 / copies);
  };
  b.snapshot = share(MemoryTerm::kOptimizer, 1) + share(MemoryTerm::kWeights, 3);
  b.save_peak = states + p[MemoryTerm::kOther] + (local ? b.snapshot : Bytes{});
  if (local) return b;
  b.coverage = kMemoryBoundCoverage;
  b.fragmentation = Bytes{kAllocatorShare * p.peak.v};
  b.workspace = Bytes{kLibraryWorkspaceBytes};
  b.communicators = communicator_buffers(plan);
  b.num_communicators = communicators_of_rank(plan);
  // Once the moments are there, no activation is.
  const StateBytes bytes = state_bytes(l);
  const double master = l.precision == Precision::kFp32 ? 0 : 4;
  const Bytes moments = p[MemoryTerm::kOptimizer] * ((bytes.optimizer - master) / bytes.optimizer);
  b.first_step_peak = std::max(p.peak - moments, states + p[MemoryTerm::kOther]);
  return b;
}

}  // namespace meshwright
