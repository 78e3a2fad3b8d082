// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/placement.h"

#include <algorithm>

#include "sim/schedule/param_roles.h"

namespace meshwright {
namespace {

/// Pipeline ranks that hold `block`, one per copy of the model.
std::vector<int> holders(const StageMap& map, int block) {
  std::vector<int> ranks;
  for (int i = 0; i < map.size(); ++i) {
    if (block >= map[i].block_begin && block < map[i].block_end) ranks.push_back(map[i].rank);
  }
  return ranks;
}

/// The bucket that a tensor of `block` belongs to, made where there is none yet.
Bucket& bucket_of(RankPlacement& placement, const Bucket& like) {
  if (!like.tied) {
    for (Bucket& b : placement.buckets) {
      if (b.block == like.block && b.experts == like.experts && b.adapters == like.adapters &&
          b.persistent == like.persistent && !b.tied)
        return b;
    }
  }
  return placement.buckets.emplace_back(like);
}

/// How half of an adapter lies over tp: along its projection where that is split on the half's own
/// side, else whole on each rank, whose gradients are partial sums.
TpSplit adapter_split(TpSplit projection, AdapterHalf half) {
  const TpSplit own = half == AdapterHalf::kUp ? TpSplit::kRows : TpSplit::kColumns;
  return projection == own ? own : TpSplit::kReplicated;
}

}  // namespace

int64_t RankPlacement::parameters() const {
  int64_t sum = 0;
  for (const Bucket& b : buckets) sum += b.numel;
  return sum;
}

int64_t RankPlacement::padded_parameters() const {
  int64_t sum = 0;
  for (const Bucket& b : buckets) sum += b.padded_numel;
  return sum;
}

int64_t RankPlacement::trained_parameters() const {
  int64_t sum = 0;
  for (const Bucket& b : buckets) sum += b.frozen ? 0 : b.padded_numel;
  return sum;
}

std::pair<int, PackedParam> RankPlacement::find(int block, ParamSlot slot) const {
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].block != block) continue;
    for (const PackedParam& p : buckets[i].params) {
      if (p.slot == slot && p.adapter == AdapterHalf::kNone) return {static_cast<int>(i), p};
    }
  }
  MW_CHECK(slot == ParamSlot::kLmHead && block != 0, "no parameter for an operator");
  return find(0, ParamSlot::kTable);
}

PlacementTable::PlacementTable(const Plan& plan) : plan_(plan), mesh_(plan.layout()) {
  const Layout& l = plan.layout();
  const int kv_copies = static_cast<int>(std::max<int64_t>(1, l.tp / plan.model().num_kv_heads));
  std::vector<LogicalTensor> tensors = logical_tensors(plan.model());
  if (plan.workload().lora) {
    for (LogicalTensor& t : adapter_tensors(plan.model(), plan.workload().lora->rank))
      tensors.push_back(std::move(t));
  }
  for (LogicalTensor& t : tensors) {
    TensorPlacement p;
    const ParamRole role = t.role;
    const bool adapter = t.adapter != AdapterHalf::kNone;
    const TpSplit split = adapter ? adapter_split(tp_split(role), t.adapter) : tp_split(role);
    if (split == TpSplit::kReplicated) {
      p.tp_copies = l.tp;
      const bool split_projection = adapter && tp_split(role) != TpSplit::kReplicated;
      p.copies_are_partial = l.tp > 1 && (l.sp || split_projection || partial_without_sp(role));
    } else if (is_expert(role) && !l.expert_tp) {
      p.tp_copies = 1;  // whole experts, each on one rank
    } else {
      const int last = static_cast<int>(t.shape.size()) - 1;
      p.tp_dim = split == TpSplit::kColumns ? last : last == 2 ? 1 : 0;
      if (is_kv(role)) {
        p.tp_copies = kv_copies;
        p.copies_are_partial = kv_copies > 1;
      }
    }
    p.stages = holders(plan.stage_map(), t.block);
    if (role == ParamRole::kEmbedding && !adapter && plan.model().tied_embeddings) {
      const int head = plan.stage_of_block(num_blocks(plan.model()) - 1);
      if (std::find(p.stages.begin(), p.stages.end(), head) == p.stages.end()) {
        p.head_stage = head;
        p.stages.push_back(head);
      }
    }
    p.logical = std::move(t);
    tensors_.push_back(std::move(p));
  }
}

RankPlacement PlacementTable::of_rank(int rank) const {
  const Layout& l = plan_.layout();
  const MeshCoord c = mesh_.coord(rank);
  RankPlacement out;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorPlacement& p = tensors_[i];
    const auto stage = std::find(p.stages.begin(), p.stages.end(), c.pp);
    if (stage == p.stages.end()) continue;
    const bool copy_of_tied = p.head_stage == c.pp;
    const int block = copy_of_tied ? num_blocks(plan_.model()) - 1 : p.logical.block;
    const bool tied = p.head_stage >= 0;
    const bool experts = is_expert(p.logical.role) && l.ep > 1;
    const bool adapter = p.logical.adapter != AdapterHalf::kNone;
    Bucket& bucket = bucket_of(out,
                               {.block = block,
                                .experts = experts,
                                .frozen = plan_.workload().lora.has_value() && !adapter,
                                .adapters = adapter,
                                .persistent = !tied && l.persists(p.logical.numel()),
                                .tied = tied,
                                .params = {},
                                .segments = {},
                                .partial = {}});

    const std::vector<int64_t>& shape = p.logical.shape;
    const bool stacked = shape.size() == 3;  // experts
    Segment seg{.tensor = static_cast<int>(i),
                .rows = shape[stacked ? 1 : 0],
                .cols = shape.size() > 1 ? shape.back() : 1,
                .matrices = stacked ? shape[0] : 1};
    if (experts) {
      const ShardRange own = shard_range(shape[0], l.ep, mesh_.index_in(GroupKind::kEp, rank));
      seg.matrix_begin = own.begin;
      seg.matrices = own.size();
    }
    if (p.tp_dim) {
      const ShardRange r = shard_range(
          shape[static_cast<size_t>(*p.tp_dim)], l.tp / p.tp_copies, c.tp / p.tp_copies);
      const bool by_rows = *p.tp_dim == (stacked ? 1 : 0);
      (by_rows ? seg.row_begin : seg.col_begin) = r.begin;
      (by_rows ? seg.rows : seg.cols) = r.size();
    }
    seg.offset = bucket.numel;
    seg.counted = c.tp % p.tp_copies == 0 && stage == p.stages.begin();
    if (p.copies_are_partial) bucket.partial.push_back({seg.offset, seg.numel(), p.tp_copies});
    bucket.numel += seg.numel();

    const ParamSlot slot = copy_of_tied ? ParamSlot::kLmHead : slot_of(p.logical.role);
    if (!bucket.params.empty() && bucket.params.back().slot == slot &&
        bucket.params.back().adapter == p.logical.adapter) {
      bucket.params.back().rows += seg.rows;
    } else {
      bucket.params.push_back({.slot = slot,
                               .rows = seg.rows,
                               .cols = seg.cols,
                               .offset = seg.offset,
                               .matrices = seg.matrices,
                               .adapter = p.logical.adapter});
    }
    bucket.segments.push_back(seg);
  }
  // The tied copy was met first (tensors are in model order) but belongs to the last block.
  std::stable_sort(out.buckets.begin(), out.buckets.end(), [](const Bucket& a, const Bucket& b) {
    return a.block < b.block;
  });
  const std::vector<int>& own = plan_.stage_map().of_rank(c.pp);
  const bool has_head = std::any_of(
      own.begin(), own.end(), [&](int stage) { return plan_.stage_map()[stage].next < 0; });
  for (Bucket& b : out.buckets) {
    b.whole_at_end =
        b.tied || (plan_.model().tied_embeddings && b.block == 0 && !b.adapters && has_head);
    const int64_t parts = b.experts ? l.expert_replicas() : l.replicas();
    b.padded_numel = (b.numel + parts - 1) / parts * parts;
  }
  return out;
}

ShardRange PlacementTable::owned_range(const Bucket& bucket, int rank) const {
  const Layout& l = plan_.layout();
  if (!optimizer_sharded()) {
    return bucket.experts
               ? shard_range(bucket.padded_numel,
                             l.expert_replicas(),
                             mesh_.index_in(GroupKind::kExpertDp, rank))
               : shard_range(
                     bucket.padded_numel, l.replicas(), mesh_.index_in(GroupKind::kDp, rank));
  }
  return bucket.experts
             ? shard_range(bucket.padded_numel,
                           l.expert_shards(),
                           mesh_.index_in(GroupKind::kExpertShard, rank))
             : shard_range(
                   bucket.padded_numel, l.shards(), mesh_.index_in(GroupKind::kDpShard, rank));
}

bool PlacementTable::counts_owned_range(const Bucket& bucket, int rank) const {
  const GroupKind copies = bucket.experts ? GroupKind::kExpertReplicate : GroupKind::kDpReplicate;
  return !optimizer_sharded() || mesh_.index_in(copies, rank) == 0;
}

std::vector<RankPlacement> stage_placements(const Plan& plan) {
  const PlacementTable table(plan);
  const Mesh mesh(plan.layout());
  std::vector<RankPlacement> placements;
  for (int s = 0; s < plan.layout().pp; ++s)
    placements.push_back(table.of_rank(mesh.rank({.pp = s})));
  return placements;
}

}  // namespace meshwright
