// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/stage_costs.h"

#include <algorithm>

namespace meshwright {
namespace {

constexpr Bytes kStepScalars{16.0};  // squared norm and loss

/// The shape of rank 0's group of `kind` and of the ranks that hold the other copies of the same
/// blocks, at the far end of the pipeline.
GroupShape with_copies(const Mesh& mesh,
                       const ClusterSpec& cluster,
                       const Layout& l,
                       GroupKind kind) {
  GroupShape shape = group_shape(mesh, cluster, kind);
  if (l.model_copies() == 1) return shape;
  shape.num_ranks *= 2;
  const bool one_node = mesh.world_size() <= cluster.devices_per_node;
  if (one_node) shape.ranks_per_node *= 2;
  return shape;
}

/// Pipeline neighbours: the first rank of stage 0 and of stage 1.
GroupShape neighbour_shape(const Mesh& mesh, const ClusterSpec& cluster) {
  const int distance = mesh.rank_at_stage(0, 1);
  return {.num_ranks = 2, .ranks_per_node = distance < cluster.devices_per_node ? 2 : 1};
}

}  // namespace

StageCosts::StageCosts(const Plan& plan, const CostModel& cost, StageCostCache& cache)
    : plan_(plan),
      cost_(cost),
      shard_(cache.shard(plan, cost)),
      placements_(cache.placements(plan)),
      states_(state_bytes(plan.layout())),
      prefix_(static_cast<size_t>(num_blocks(plan.model()) + 1)) {
  const Layout& l = plan.layout();
  const Mesh mesh(l);
  const ClusterSpec& cluster = plan.cluster();
  groups_ = shard_groups(mesh, cluster);
  dense_ = {.all = with_copies(mesh, cluster, l, GroupKind::kDp),
            .shard = group_shape(mesh, cluster, GroupKind::kDpShard),
            .replicate = with_copies(mesh, cluster, l, GroupKind::kDpReplicate)};
  experts_ = {.all = with_copies(mesh, cluster, l, GroupKind::kExpertDp),
              .shard = group_shape(mesh, cluster, GroupKind::kExpertShard),
              .replicate = with_copies(mesh, cluster, l, GroupKind::kExpertReplicate)};
  tie_ = group_shape(mesh, cluster, GroupKind::kTie);
  world_ = group_shape(mesh, cluster, GroupKind::kWorld);
  for (size_t b = 0; b + 1 < prefix_.size(); ++b) {
    prefix_[b + 1] = prefix_[b];
    ++prefix_[b + 1][static_cast<size_t>(block_kind(plan, static_cast<int>(b)))];
  }
  if (cost.step_stack() && l.precision != Precision::kFp32)
    exchange_.emplace(step_problem(*cost.step_stack(), plan), l);
  if (l.pp > 1) {
    const Bytes boundary{shard_->footprints.boundary};
    const GroupShape neighbours = neighbour_shape(mesh, cluster);
    transfer_ = exchange_ ? exchange_->transfer(boundary)
                          : cost.collective_time(CommOp::kSendRecv, boundary, neighbours);
  }
}

ListCost StageCosts::blocks(const Action& a) const {
  const auto& before = prefix_[static_cast<size_t>(a.block_begin)];
  const auto& after = prefix_[static_cast<size_t>(a.block_end)];
  ListCost sum;
  for (size_t kind = 0; kind < kNumBlockKinds; ++kind) {
    const int count = after[kind] - before[kind];
    if (count > 0) sum = sum + shard_->blocks[kind].of(a.kind) * count;
  }
  sum.host += cost_.host_per_action();
  // Once per micro-batch, however many parts of it a rank runs, and in however many actions.
  const bool begins =
      a.virtual_stage < 0 || a.block_begin == plan_.stage_map()[a.virtual_stage].block_begin;
  if (a.kind == ActionKind::kForward && begins)
    sum.host += cost_.host_per_micro_batch() / static_cast<double>(plan_.layout().virtual_stages);
  return sum;
}

Seconds StageCosts::step_start(int stage) const {
  return cost_.zeroing_time(
      Bytes{states_.gradient * static_cast<double>(placement(stage).trained_parameters())});
}

const Bucket& StageCosts::bucket(int stage, int index) const {
  return placement(stage).buckets[static_cast<size_t>(index)];
}

/// One that is joined to another costs what its bytes add.
Seconds StageCosts::whole_reduce(const Bucket& b, bool joined) const {
  const auto numel = static_cast<double>(b.padded_numel);
  const Seconds alone = reduce_alone(numel, b.experts);
  return joined ? std::max(Seconds{}, alone - reduce_alone(1, b.experts)) : alone;
}

Seconds StageCosts::reduce_alone(double numel, bool experts) const {
  if (exchange_) return exchange_->reduce(numel, experts);
  const Bytes bytes{states_.gradient * numel};
  // Two copies of the model double the replicas: a rank and its mirror reduce at the same time.
  const Replicas& r = experts ? experts_ : dense_;
  if (plan_.layout().zero_stage == 0)
    return cost_.collective_time(CommOp::kAllReduce, bytes, r.all);
  const Bytes shard = bytes / static_cast<double>(r.shard.num_ranks);
  return cost_.collective_time(CommOp::kReduceScatter, bytes, r.shard) +
         cost_.collective_time(CommOp::kAllReduce, shard, r.replicate);
}

Seconds StageCosts::whole_gather(const Bucket& b) const {
  const Layout& l = plan_.layout();
  const auto numel = static_cast<double>(b.padded_numel);
  Seconds t;
  if (l.offload.parameters != MemoryTier::kDevice) {
    const double shards = b.experts ? l.expert_shards() : l.shards();
    t += Bytes{weight_bytes(plan_, b) * numel / shards} /
         tier_bandwidth(plan_.cluster().device, l.offload.parameters);
  }
  if (exchange_) return t + exchange_->gather(numel, b.experts);
  return t + cost_.collective_time(CommOp::kAllGather,
                                   Bytes{weight_bytes(plan_, b) * numel},
                                   (b.experts ? experts_ : dense_).shard);
}

Seconds StageCosts::behind(const Action& a, int stage) const {
  const Bucket& b = bucket(stage, a.bucket);
  const bool gathers = a.kind == ActionKind::kGather;
  return (gathers ? whole_gather(b) : whole_reduce(b, a.joined)) * hidden_share();
}

Seconds StageCosts::shown(const Bucket& b, Seconds exchange, bool gather) const {
  if (!exchange_) return Seconds{};
  const BlockCosts& block = shard_->blocks[static_cast<size_t>(block_kind(plan_, b.block))];
  const Seconds behind = gather ? block.forward.total() : block.backward.total();
  return exchange * exchange_->exposed() + std::min(exchange, behind) * exchange_->interference();
}

double StageCosts::hidden_share() const { return exchange_ ? 1 - exchange_->exposed() : 1.0; }

Seconds StageCosts::duration(const Action& a, int stage) const {
  switch (a.kind) {
    case ActionKind::kSumCopies: {
      Seconds t;
      for (const PartialRange& r :
           placement(stage).buckets[static_cast<size_t>(a.bucket)].partial) {
        const GroupShape shape{.num_ranks = r.copies,
                               .ranks_per_node = std::min(r.copies, groups_.tp.ranks_per_node)};
        t += cost_.collective_time(
            CommOp::kAllReduce, Bytes{states_.gradient * static_cast<double>(r.numel)}, shape);
      }
      return t;
    }
    case ActionKind::kSumTied: {
      const Bucket& b = placement(stage).buckets[static_cast<size_t>(a.bucket)];
      return cost_.collective_time(
          CommOp::kAllReduce, Bytes{states_.gradient * static_cast<double>(b.padded_numel)}, tie_);
    }
    case ActionKind::kGradNorm: {
      // Reading the gradients once, and one small all-reduce over all ranks.
      Operator read{.kind = OpKind::kAdd, .inputs = {}, .outputs = {}};
      const double owned =
          static_cast<double>(placement(stage).trained_parameters()) / plan_.layout().replicas();
      read.bytes = Bytes{states_.gradient * owned};
      return cost_.operator_time(read, plan_.layout().precision, groups_) +
             cost_.collective_time(CommOp::kAllReduce, kStepScalars, world_);
    }
    case ActionKind::kOptimizer: {
      const Layout& l = plan_.layout();
      const Bucket& b = bucket(stage, a.bucket);
      const double shards = l.zero_stage == 0 ? 1 : b.experts ? l.expert_shards() : l.shards();
      const double owned = static_cast<double>(b.padded_numel) / shards;
      const MemoryTier tier = l.offload.optimizer;
      Seconds t = cost_.optimizer_time(owned, l.precision);
      // States that live outside are read and written there: gradients go, weights come back.
      if (tier != MemoryTier::kDevice)
        t += Bytes{owned * (states_.gradient + states_.weight + 2 * states_.optimizer)} /
             tier_bandwidth(plan_.cluster().device, tier);
      return t;
    }
    case ActionKind::kForward:
    case ActionKind::kRecompute:
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
      return blocks(a).total();
    case ActionKind::kWaitReduce:
      return shown(bucket(stage, a.bucket), whole_reduce(bucket(stage, a.bucket), a.joined), false);
    case ActionKind::kWaitGather:
      return shown(bucket(stage, a.bucket), whole_gather(bucket(stage, a.bucket)), true);
    case ActionKind::kSend:
    case ActionKind::kPostRecv:
    case ActionKind::kRecv:
    case ActionKind::kReduce:
    case ActionKind::kGather:
    case ActionKind::kRelease:
      return Seconds{};
  }
  return Seconds{};
}

}  // namespace meshwright
