// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/placement.h"

#include <algorithm>

namespace meshwright {
namespace {

ParamSlot slot_of(ParamRole role) {
  switch (role) {
    case ParamRole::kEmbedding:
      return ParamSlot::kTable;
    case ParamRole::kPosition:
      return ParamSlot::kPosition;
    case ParamRole::kAttnNorm:
      return ParamSlot::kAttnNorm;
    case ParamRole::kAttnNormBias:
      return ParamSlot::kAttnNormBias;
    case ParamRole::kQuery:
    case ParamRole::kKey:
    case ParamRole::kValue:
      return ParamSlot::kQkv;
    case ParamRole::kQueryBias:
    case ParamRole::kKeyBias:
    case ParamRole::kValueBias:
      return ParamSlot::kQkvBias;
    case ParamRole::kQueryNorm:
      return ParamSlot::kQueryNorm;
    case ParamRole::kKeyNorm:
      return ParamSlot::kKeyNorm;
    case ParamRole::kQueryDown:
    case ParamRole::kKvDown:
      return ParamSlot::kLatentDown;
    case ParamRole::kQueryDownNorm:
      return ParamSlot::kQueryDownNorm;
    case ParamRole::kQueryUp:
      return ParamSlot::kQueryUp;
    case ParamRole::kKvDownNorm:
      return ParamSlot::kKvDownNorm;
    case ParamRole::kKvUp:
      return ParamSlot::kKvUp;
    case ParamRole::kAttnOut:
      return ParamSlot::kAttnOut;
    case ParamRole::kAttnOutBias:
      return ParamSlot::kAttnOutBias;
    case ParamRole::kPostAttnNorm:
      return ParamSlot::kPostAttnNorm;
    case ParamRole::kFfnNorm:
      return ParamSlot::kFfnNorm;
    case ParamRole::kFfnNormBias:
      return ParamSlot::kFfnNormBias;
    case ParamRole::kGate:
    case ParamRole::kUp:
      return ParamSlot::kGateUp;
    case ParamRole::kUpBias:
      return ParamSlot::kUpBias;
    case ParamRole::kDown:
      return ParamSlot::kDown;
    case ParamRole::kDownBias:
      return ParamSlot::kDownBias;
    case ParamRole::kPostFfnNorm:
      return ParamSlot::kPostFfnNorm;
    case ParamRole::kRouter:
      return ParamSlot::kRouter;
    case ParamRole::kRouterBias:
      return ParamSlot::kRouterBias;
    case ParamRole::kExpertGate:
    case ParamRole::kExpertUp:
      return ParamSlot::kExpertGateUp;
    case ParamRole::kExpertDown:
      return ParamSlot::kExpertDown;
    case ParamRole::kSharedGate:
    case ParamRole::kSharedUp:
      return ParamSlot::kSharedGateUp;
    case ParamRole::kSharedDown:
      return ParamSlot::kSharedDown;
    case ParamRole::kSharedExpertGate:
      return ParamSlot::kSharedExpertGate;
    case ParamRole::kFinalNorm:
      return ParamSlot::kFinalNorm;
    case ParamRole::kFinalNormBias:
      return ParamSlot::kFinalNormBias;
    case ParamRole::kLmHead:
      return ParamSlot::kLmHead;
    case ParamRole::kMtpNorm:
    case ParamRole::kMtpProjection:
      break;  // not listed by logical_tensors()
  }
  return ParamSlot::kNone;
}

/// How a role lies over tensor-parallel ranks.
enum class TpSplit { kReplicated, kRows, kColumns };

TpSplit tp_split(ParamRole role) {
  switch (role) {
    case ParamRole::kEmbedding:
    case ParamRole::kLmHead:
    case ParamRole::kQuery:
    case ParamRole::kKey:
    case ParamRole::kValue:
    case ParamRole::kQueryBias:
    case ParamRole::kKeyBias:
    case ParamRole::kValueBias:
    case ParamRole::kQueryUp:
    case ParamRole::kKvUp:
    case ParamRole::kGate:
    case ParamRole::kUp:
    case ParamRole::kUpBias:
    case ParamRole::kExpertGate:
    case ParamRole::kExpertUp:
    case ParamRole::kSharedGate:
    case ParamRole::kSharedUp:
      return TpSplit::kRows;
    case ParamRole::kAttnOut:
    case ParamRole::kDown:
    case ParamRole::kExpertDown:
    case ParamRole::kSharedDown:
      return TpSplit::kColumns;
    default:
      return TpSplit::kReplicated;
  }
}

/// Replicated tensors whose copies see different heads or expert shards on each tp rank, so that
/// their gradients are partial sums with or without sequence parallelism.
bool partial_without_sp(ParamRole role) {
  switch (role) {
    case ParamRole::kQueryNorm:
    case ParamRole::kKeyNorm:
    case ParamRole::kQueryDown:
    case ParamRole::kQueryDownNorm:
    case ParamRole::kKvDown:
    case ParamRole::kKvDownNorm:
    case ParamRole::kRouter:
    case ParamRole::kSharedExpertGate:
      return true;
    default:
      return false;
  }
}

bool is_kv(ParamRole role) {
  return role == ParamRole::kKey || role == ParamRole::kValue || role == ParamRole::kKeyBias ||
         role == ParamRole::kValueBias;
}

/// Pipeline ranks that hold `block`, one per copy of the model.
std::vector<int> holders(const StageMap& map, int block) {
  std::vector<int> ranks;
  for (int i = 0; i < map.size(); ++i) {
    if (block >= map[i].block_begin && block < map[i].block_end) ranks.push_back(map[i].rank);
  }
  return ranks;
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

std::pair<int, PackedParam> RankPlacement::find(int block, ParamSlot slot) const {
  for (size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].block != block) continue;
    for (const PackedParam& p : buckets[i].params) {
      if (p.slot == slot) return {static_cast<int>(i), p};
    }
  }
  MW_CHECK(slot == ParamSlot::kLmHead && block != 0, "no parameter for an operator");
  return find(0, ParamSlot::kTable);
}

PlacementTable::PlacementTable(const Plan& plan) : plan_(plan), mesh_(plan.layout()) {
  const Layout& l = plan.layout();
  const int kv_copies = static_cast<int>(std::max<int64_t>(1, l.tp / plan.model().num_kv_heads));
  for (LogicalTensor& t : logical_tensors(plan.model())) {
    TensorPlacement p;
    const ParamRole role = t.role;
    const TpSplit split = tp_split(role);
    if (split == TpSplit::kReplicated) {
      p.tp_copies = l.tp;
      p.copies_are_partial = l.tp > 1 && (l.sp || partial_without_sp(role));
    } else {
      const int last = static_cast<int>(t.shape.size()) - 1;
      p.tp_dim = split == TpSplit::kColumns ? last : last == 2 ? 1 : 0;
      if (is_kv(role)) {
        p.tp_copies = kv_copies;
        p.copies_are_partial = kv_copies > 1;
      }
    }
    p.stages = holders(plan.stage_map(), t.block);
    if (role == ParamRole::kEmbedding && plan.model().tied_embeddings) {
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
    if (out.buckets.empty() || out.buckets.back().block != block || tied) {
      out.buckets.push_back(
          Bucket{.block = block, .tied = tied, .params = {}, .segments = {}, .partial = {}});
    }
    Bucket& bucket = out.buckets.back();

    const std::vector<int64_t>& shape = p.logical.shape;
    const bool stacked = shape.size() == 3;  // experts
    Segment seg{.tensor = static_cast<int>(i),
                .rows = shape[stacked ? 1 : 0],
                .cols = shape.size() > 1 ? shape.back() : 1,
                .matrices = stacked ? shape[0] : 1};
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
    if (!bucket.params.empty() && bucket.params.back().slot == slot) {
      bucket.params.back().rows += seg.rows;
    } else {
      bucket.params.push_back({.slot = slot,
                               .rows = seg.rows,
                               .cols = seg.cols,
                               .offset = seg.offset,
                               .matrices = seg.matrices});
    }
    bucket.segments.push_back(seg);
  }
  // The tied copy was met first (tensors are in model order) but belongs to the last block.
  std::stable_sort(out.buckets.begin(), out.buckets.end(), [](const Bucket& a, const Bucket& b) {
    return a.block < b.block;
  });
  for (Bucket& b : out.buckets) {
    const int64_t parts = l.dp();
    b.padded_numel = (b.numel + parts - 1) / parts * parts;
  }
  return out;
}

ShardRange PlacementTable::owned_range(const Bucket& bucket, int rank) const {
  const Layout& l = plan_.layout();
  if (optimizer_sharded())
    return shard_range(bucket.padded_numel, l.dp_shard, mesh_.coord(rank).dp_shard);
  return shard_range(bucket.padded_numel, l.dp(), mesh_.dp_index(rank));
}

bool PlacementTable::counts_owned_range(int rank) const {
  return !optimizer_sharded() || mesh_.coord(rank).dp_replicate == 0;
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
