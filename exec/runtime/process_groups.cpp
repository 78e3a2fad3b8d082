// SPDX-License-Identifier: Apache-2.0
#include "exec/runtime/process_groups.h"

#include <set>
#include <utility>

#include "sim/mesh/mesh.h"

namespace meshwright {
namespace {

/// Makes the groups list_of(r) of all ranks r, each list once; returns the one of this rank.
template <class ListOf>
std::shared_ptr<Communicator> make_all(CommWorld& world, const ListOf& list_of) {
  std::set<std::vector<int>> made;
  std::shared_ptr<Communicator> own;
  for (int r = 0; r < world.world_size(); ++r) {
    const std::vector<int> ranks = list_of(r);
    if (!made.insert(ranks).second) continue;
    if (auto group = world.group(ranks)) own = std::move(group);
  }
  return own;
}

}  // namespace

ProcessGroups make_process_groups(CommWorld& world, const Plan& plan, const PlacementTable& table) {
  const Mesh mesh(plan.layout());
  const auto of_kind = [&](GroupKind kind) {
    return make_all(world, [&](int r) { return mesh.group(kind, r); });
  };
  ProcessGroups g;
  g.world = of_kind(GroupKind::kWorld);
  // Where the pipeline holds two copies of the model, the rank with the other copy of the same
  // blocks is one more replica.
  const auto with_copies = [&](GroupKind kind) {
    return make_all(world, [&](int r) {
      std::vector<int> ranks = mesh.group(kind, r);
      if (plan.layout().model_copies() == 1) return ranks;
      const int mirror = mesh.rank_at_stage(r, plan.layout().pp - 1 - mesh.coord(r).pp);
      const std::vector<int> others = mesh.group(kind, mirror);
      ranks.insert(mirror < r ? ranks.begin() : ranks.end(), others.begin(), others.end());
      return ranks;
    });
  };
  g.tp = of_kind(GroupKind::kTp);
  g.dp = with_copies(GroupKind::kDp);
  g.dp_shard = of_kind(GroupKind::kDpShard);
  g.dp_replicate = with_copies(GroupKind::kDpReplicate);
  g.pipeline = make_all(world, [&](int r) {
    std::vector<int> ranks;
    for (int stage = 0; stage < plan.layout().pp; ++stage)
      ranks.push_back(mesh.rank_at_stage(r, stage));
    return ranks;
  });
  if (plan.model().tied_embeddings && plan.layout().pp > 1) g.tie = of_kind(GroupKind::kTie);

  std::set<int> copies;
  for (const TensorPlacement& t : table.tensors()) {
    if (t.copies_are_partial && t.tp_copies > 1) copies.insert(t.tp_copies);
  }
  for (const int n : copies) {
    g.copies[n] = make_all(world, [&](int r) {
      const std::vector<int> tp = mesh.group(GroupKind::kTp, r);
      const auto first = tp.begin() + mesh.coord(r).tp / n * n;
      return std::vector<int>(first, first + n);
    });
  }
  return g;
}

}  // namespace meshwright
