// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/stage_costs.h"

#include <algorithm>

#include "sim/step/shard_cost.h"

namespace meshwright {
namespace {

constexpr double kGradientBytes = 4.0;  // FP32 gradients in every precision
constexpr Bytes kStepScalars{16.0};     // squared norm and loss

ListCost operator+(const ListCost& a, const ListCost& b) {
  return {a.compute + b.compute, a.comm + b.comm, a.host + b.host};
}

ListCost operator*(const ListCost& a, double times) {
  return {a.compute * times, a.comm * times, a.host * times};
}

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

/// Of a head, two of three matmuls are backward's; of an embedding, half the traffic.
constexpr double kHeadForwardShare = 1.0 / 3;
constexpr double kEmbeddingForwardShare = 0.5;

void split_in_two(BlockCosts& c, double seconds, double forward_share) {
  c.forward.compute = Seconds{seconds * forward_share};
  c.backward.compute = Seconds{seconds * (1 - forward_share)};
  c.backward_input.compute = c.backward.compute / 2.0;
  c.backward_weight.compute = c.backward.compute / 2.0;
}

/// The blocks' prices from the step model: a layer is the mean layer of the model.
void price_by_step_model(const StepStack& stack, const Plan& plan, ShardCosts& costs) {
  const ShardCost shard = price_shard(step_problem(stack, plan), shard_layout(plan.layout()));
  const BlockCost& b = shard.block;
  BlockCosts layer;
  layer.forward.compute = Seconds{b.forward_s};
  layer.recompute.compute = Seconds{b.recompute_s};
  layer.backward.compute = Seconds{b.backward_s};
  layer.backward_input.compute = Seconds{b.backward_s - b.weight_grad_s};
  layer.backward_weight.compute = Seconds{b.weight_grad_s};
  // Exposed collectives: forward's own, its repetition under recompute, and the rest backward's.
  const double repeated = b.forward_s > 0 ? b.recompute_s / b.forward_s : 0;
  const double again = plan.layout().recompute == Recompute::kFull ? repeated : 0;
  const double others = b.cp_s + b.ep_s;
  const double forward_comm = b.tp_forward_s + others / (3 + again);
  layer.forward.comm = Seconds{forward_comm};
  layer.recompute.comm = Seconds{forward_comm * again};
  layer.backward.comm = Seconds{b.tp_s + others - forward_comm * (1 + again)};
  layer.backward_input.comm = layer.backward.comm;
  // Host time that shows, in proportion to the device's.
  const double device = b.device_s();
  const auto host = [&](ListCost& c) {
    if (device > 0) c.host = Seconds{b.host_s * (c.compute + c.comm).v / device};
  };
  for (ListCost* c : {&layer.forward,
                      &layer.recompute,
                      &layer.backward,
                      &layer.backward_input,
                      &layer.backward_weight}) {
    host(*c);
  }
  costs.blocks[static_cast<int>(BlockKind::kDecoder)] = layer;
  costs.blocks[static_cast<int>(BlockKind::kMoeDecoder)] = layer;
  split_in_two(
      costs.blocks[static_cast<int>(BlockKind::kEmbedding)], shard.embed_s, kEmbeddingForwardShare);
  split_in_two(costs.blocks[static_cast<int>(BlockKind::kHead)],
               shard.head_s + shard.mtp_s,
               kHeadForwardShare);
}

}  // namespace

std::shared_ptr<const ShardCosts> StageCostCache::shard(const Plan& plan, const CostModel& cost) {
  const Layout& l = plan.layout();
  auto& slot =
      shards_[{l.tp, l.sp, l.ep, l.micro_batch, l.recompute, l.flash_attention, l.precision}];
  if (slot) return slot;
  auto costs = std::make_shared<ShardCosts>();
  costs->graph = build_model_graph(plan, 0);
  costs->footprints = footprints(costs->graph);
  if (cost.step_stack() && l.precision == Precision::kBf16) {
    price_by_step_model(*cost.step_stack(), plan, *costs);
    return slot = std::move(costs);
  }
  const GroupShape tp = group_shape(Mesh(l), plan.cluster(), GroupKind::kTp);
  for (int kind = 0; kind < kNumBlockKinds; ++kind) {
    const BlockGraph& b = costs->graph.blocks[kind];
    if (b.forward.empty()) continue;  // a kind that the model does not have
    BlockCosts& c = costs->blocks[kind];
    c.forward = cost.list_time(b.forward, b.kind, true, l.precision, tp);
    c.backward = cost.list_time(b.backward, b.kind, false, l.precision, tp);
    if (!b.recompute.empty())
      c.recompute = cost.list_time(b.recompute, b.kind, true, l.precision, tp);
    c.backward_input = cost.list_time(b.backward_input, b.kind, false, l.precision, tp);
    c.backward_weight = cost.list_time(b.backward_weight, b.kind, false, l.precision, tp);
    // Host time is that of the whole backward, by operators: what one half cannot hide is not
    // hidden twice.
    const auto input_ops = static_cast<double>(b.backward_input.size());
    const auto weight_ops = static_cast<double>(b.backward_weight.size());
    c.backward_input.host = c.backward.host * (input_ops / (input_ops + weight_ops));
    c.backward_weight.host = c.backward.host * (weight_ops / (input_ops + weight_ops));
  }
  return slot = std::move(costs);
}

std::shared_ptr<const StagePlacements> StageCostCache::placements(const Plan& plan) {
  const Layout& l = plan.layout();
  auto& slot = placements_[{l.tp,
                            l.sp,
                            l.dp_replicate,
                            l.dp_shard,
                            l.zero_stage,
                            l.pp,
                            stage_order(l.schedule),
                            l.stages}];
  if (slot) return slot;
  return slot = std::make_shared<const StagePlacements>(stage_placements(plan));
}

StageCosts::StageCosts(const Plan& plan, const CostModel& cost, StageCostCache& cache)
    : plan_(plan),
      cost_(cost),
      shard_(cache.shard(plan, cost)),
      placements_(cache.placements(plan)) {
  const Mesh mesh(plan.layout());
  const ClusterSpec& cluster = plan.cluster();
  tp_ = group_shape(mesh, cluster, GroupKind::kTp);
  dp_ = with_copies(mesh, cluster, plan.layout(), GroupKind::kDp);
  dp_shard_ = group_shape(mesh, cluster, GroupKind::kDpShard);
  dp_replicate_ = with_copies(mesh, cluster, plan.layout(), GroupKind::kDpReplicate);
  tie_ = group_shape(mesh, cluster, GroupKind::kTie);
  world_ = group_shape(mesh, cluster, GroupKind::kWorld);
  if (plan.layout().pp > 1) {
    transfer_ = cost.collective_time(
        CommOp::kSendRecv, Bytes{shard_->footprints.boundary}, neighbour_shape(mesh, cluster));
  }
}

const ListCost& BlockCosts::of(ActionKind kind) const {
  switch (kind) {
    case ActionKind::kForward:
      return forward;
    case ActionKind::kRecompute:
      return recompute;
    case ActionKind::kBackwardInput:
      return backward_input;
    case ActionKind::kBackwardWeight:
      return backward_weight;
    default:
      return backward;
  }
}

ListCost StageCosts::blocks(const Action& a) const {
  const int last = num_blocks(plan_.model()) - 1;
  const bool embedding = a.block_begin == 0;
  const bool head = a.block_end > last;
  const int decoders = a.block_end - a.block_begin - (embedding ? 1 : 0) - (head ? 1 : 0);
  // Layers before the first with experts are dense.
  const std::optional<MoeSpec>& moe = plan_.model().moe;
  const int first_layer = std::max(a.block_begin, 1) - 1;
  const int dense =
      moe ? std::clamp(static_cast<int>(moe->num_dense_layers) - first_layer, 0, decoders)
          : decoders;
  ListCost sum = of(BlockKind::kDecoder).of(a.kind) * dense;
  if (dense < decoders) sum = sum + of(BlockKind::kMoeDecoder).of(a.kind) * (decoders - dense);
  if (embedding) sum = sum + of(BlockKind::kEmbedding).of(a.kind);
  if (head) sum = sum + of(BlockKind::kHead).of(a.kind);
  sum.host += cost_.host_per_action();
  if (a.kind == ActionKind::kForward) sum.host += cost_.host_per_micro_batch();
  return sum;
}

Seconds StageCosts::step_start(int stage) const {
  return cost_.zeroing_time(
      Bytes{kGradientBytes * static_cast<double>(placement(stage).padded_parameters())});
}

Seconds StageCosts::reduce(int stage, int bucket) const {
  const Bucket& b = placement(stage).buckets[static_cast<size_t>(bucket)];
  const Bytes bytes{kGradientBytes * static_cast<double>(b.padded_numel)};
  // Two copies of the model double the replicas: a rank and its mirror reduce at the same time.
  if (plan_.layout().zero_stage == 0) return cost_.collective_time(CommOp::kAllReduce, bytes, dp_);
  const Bytes shard = bytes / static_cast<double>(plan_.layout().dp_shard);
  return cost_.collective_time(CommOp::kReduceScatter, bytes, dp_shard_) +
         cost_.collective_time(CommOp::kAllReduce, shard, dp_replicate_);
}

Seconds StageCosts::gather(int stage, int bucket) const {
  const Bucket& b = placement(stage).buckets[static_cast<size_t>(bucket)];
  const auto width = static_cast<double>(size_of(activation_dtype(plan_.layout().precision)));
  return cost_.collective_time(
      CommOp::kAllGather, Bytes{width * static_cast<double>(b.padded_numel)}, dp_shard_);
}

Seconds StageCosts::duration(const Action& a, int stage) const {
  switch (a.kind) {
    case ActionKind::kSumCopies: {
      Seconds t;
      for (const PartialRange& r :
           placement(stage).buckets[static_cast<size_t>(a.bucket)].partial) {
        const GroupShape shape{.num_ranks = r.copies,
                               .ranks_per_node = std::min(r.copies, tp_.ranks_per_node)};
        t += cost_.collective_time(
            CommOp::kAllReduce, Bytes{kGradientBytes * static_cast<double>(r.numel)}, shape);
      }
      return t;
    }
    case ActionKind::kSumTied: {
      const Bucket& b = placement(stage).buckets[static_cast<size_t>(a.bucket)];
      return cost_.collective_time(
          CommOp::kAllReduce, Bytes{kGradientBytes * static_cast<double>(b.padded_numel)}, tie_);
    }
    case ActionKind::kGradNorm: {
      // Reading the gradients once, and one small all-reduce over all ranks.
      Operator read{.kind = OpKind::kAdd, .inputs = {}, .outputs = {}};
      const double owned =
          static_cast<double>(placement(stage).padded_parameters()) / plan_.layout().dp();
      read.bytes = Bytes{kGradientBytes * owned};
      return cost_.operator_time(read, plan_.layout().precision, tp_) +
             cost_.collective_time(CommOp::kAllReduce, kStepScalars, world_);
    }
    case ActionKind::kOptimizer: {
      const Bucket& b = placement(stage).buckets[static_cast<size_t>(a.bucket)];
      const double shards = plan_.layout().zero_stage >= 1 ? plan_.layout().dp_shard : 1;
      return cost_.optimizer_time(static_cast<double>(b.padded_numel) / shards,
                                  plan_.layout().precision);
    }
    case ActionKind::kForward:
    case ActionKind::kRecompute:
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
      return blocks(a).total();
    case ActionKind::kSend:
    case ActionKind::kPostRecv:
    case ActionKind::kRecv:
    case ActionKind::kReduce:
    case ActionKind::kWaitReduce:
    case ActionKind::kGather:
    case ActionKind::kWaitGather:
      return Seconds{};
  }
  return Seconds{};
}

}  // namespace meshwright
