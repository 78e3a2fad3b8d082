// SPDX-License-Identifier: Apache-2.0
#include "sim/mesh/mesh.h"

#include <algorithm>

#include "sim/core/check.h"

namespace meshwright {

Mesh::Mesh(const Layout& l)
    : pp_(l.pp),
      dp_replicate_(l.dp_replicate),
      dp_shard_(l.dp_shard),
      cp_(l.cp),
      tp_(l.tp),
      ep_(l.ep),
      expert_shards_(l.expert_shards()),
      expert_tp_(l.expert_tp) {}

MeshCoord Mesh::coord(int rank) const {
  MW_CHECK(rank >= 0 && rank < world_size());
  MeshCoord c;
  c.tp = rank % tp_;
  rank /= tp_;
  c.cp = rank % cp_;
  rank /= cp_;
  c.dp_shard = rank % dp_shard_;
  rank /= dp_shard_;
  c.dp_replicate = rank % dp_replicate_;
  c.pp = rank / dp_replicate_;
  return c;
}

int Mesh::rank(const MeshCoord& c) const {
  return (((c.pp * dp_replicate_ + c.dp_replicate) * dp_shard_ + c.dp_shard) * cp_ + c.cp) * tp_ +
         c.tp;
}

int Mesh::dp_index(int rank) const {
  const MeshCoord c = coord(rank);
  return c.dp_replicate * dp_shard_ + c.dp_shard;
}

int Mesh::index_in(GroupKind kind, int of_rank) const {
  const std::vector<int> ranks = group(kind, of_rank);
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), of_rank) - ranks.begin());
}

Mesh::ExpertPlace Mesh::expert_place(const MeshCoord& c) const {
  const int number = (c.dp_replicate * dp_shard_ + c.dp_shard) * cp_ + c.cp;
  return expert_tp_ ? ExpertPlace{number, c.tp} : ExpertPlace{number * tp_ + c.tp, 0};
}

int Mesh::rank_of(const MeshCoord& like, const ExpertPlace& place) const {
  MeshCoord c{.pp = like.pp, .tp = place.tp};
  int number = place.index;
  if (!expert_tp_) {
    c.tp = number % tp_;
    number /= tp_;
  }
  c.cp = number % cp_;
  number /= cp_;
  c.dp_shard = number % dp_shard_;
  c.dp_replicate = number / dp_shard_;
  return rank(c);
}

std::vector<int> Mesh::expert_group(GroupKind kind, const MeshCoord& c) const {
  const int all = dp_replicate_ * dp_shard_ * cp_ * (expert_tp_ ? 1 : tp_);
  const ExpertPlace own = expert_place(c);
  const int copies = all / ep_;
  std::vector<int> ranks;
  if (kind == GroupKind::kEp) {
    for (int i = 0; i < ep_; ++i) ranks.push_back(rank_of(c, {own.index / ep_ * ep_ + i, own.tp}));
    return ranks;
  }
  // The copies of one rank's experts are ep apart; ZeRO shards over runs of expert_shards_ of them.
  const int copy = own.index / ep_;
  for (int i = 0; i < copies; ++i) {
    const bool same_state = i / expert_shards_ == copy / expert_shards_;
    const bool same_shard = i % expert_shards_ == copy % expert_shards_;
    if ((kind == GroupKind::kExpertShard && !same_state) ||
        (kind == GroupKind::kExpertReplicate && !same_shard)) {
      continue;
    }
    ranks.push_back(rank_of(c, {i * ep_ + own.index % ep_, own.tp}));
  }
  return ranks;
}

std::vector<int> Mesh::group(GroupKind kind, int of_rank) const {
  const MeshCoord c = coord(of_rank);
  std::vector<int> ranks;
  auto along = [&](int degree, int MeshCoord::*axis) {
    for (int i = 0; i < degree; ++i) {
      MeshCoord other = c;
      other.*axis = i;
      ranks.push_back(rank(other));
    }
  };
  switch (kind) {
    case GroupKind::kTp:
      along(tp_, &MeshCoord::tp);
      break;
    case GroupKind::kCp:
      along(cp_, &MeshCoord::cp);
      break;
    case GroupKind::kDpReplicate:
      along(dp_replicate_, &MeshCoord::dp_replicate);
      break;
    case GroupKind::kDpShard:
    case GroupKind::kDp:
      for (int r = 0; r < dp_replicate_; ++r) {
        if (kind == GroupKind::kDpShard && r != c.dp_replicate) continue;
        for (int s = 0; s < dp_shard_; ++s) {
          for (int p = 0; p < cp_; ++p) {
            MeshCoord other = c;
            other.dp_replicate = r;
            other.dp_shard = s;
            other.cp = p;
            ranks.push_back(rank(other));
          }
        }
      }
      break;
    case GroupKind::kEp:
    case GroupKind::kExpertReplicate:
    case GroupKind::kExpertShard:
    case GroupKind::kExpertDp:
      return expert_group(kind, c);
    case GroupKind::kTie:
      ranks = {rank_at_stage(of_rank, 0)};
      if (pp_ > 1) ranks.push_back(rank_at_stage(of_rank, pp_ - 1));
      break;
    case GroupKind::kWorld:
      for (int r = 0; r < world_size(); ++r) ranks.push_back(r);
      break;
  }
  return ranks;
}

int Mesh::rank_at_stage(int of_rank, int stage) const {
  MeshCoord c = coord(of_rank);
  c.pp = stage;
  return rank(c);
}

}  // namespace meshwright
