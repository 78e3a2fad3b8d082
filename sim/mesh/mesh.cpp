// SPDX-License-Identifier: Apache-2.0
#include "sim/mesh/mesh.h"

namespace meshwright {

Mesh::Mesh(const Layout& l)
    : pp_(l.pp), dp_replicate_(l.dp_replicate), dp_shard_(l.dp_shard), cp_(l.cp), tp_(l.tp) {}

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
    case GroupKind::kDpReplicate:
      along(dp_replicate_, &MeshCoord::dp_replicate);
      break;
    case GroupKind::kDpShard:
      along(dp_shard_, &MeshCoord::dp_shard);
      break;
    case GroupKind::kDp:
      for (int r = 0; r < dp_replicate_; ++r) {
        for (int s = 0; s < dp_shard_; ++s) {
          MeshCoord other = c;
          other.dp_replicate = r;
          other.dp_shard = s;
          ranks.push_back(rank(other));
        }
      }
      break;
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
