// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/shard_costs.h"

#include <algorithm>

#include "sim/step/shard_cost.h"

namespace meshwright {
namespace {

/// Of a head, two of three matmuls are backward's; of an embedding, half the traffic.
constexpr double kHeadForwardShare = 1.0 / 3;
constexpr double kEmbeddingForwardShare = 0.5;

void split_in_two(BlockCosts& c, double seconds, double forward_share) {
  c.forward.compute = Seconds{seconds * forward_share};
  c.backward.compute = Seconds{seconds * (1 - forward_share)};
  c.backward_input.compute = c.backward.compute / 2.0;
  c.backward_weight.compute = c.backward.compute / 2.0;
}

/// The mean layer of the model by the step model.
BlockCosts layer_costs(const BlockCost& b, bool repeats_all) {
  BlockCosts layer;
  layer.forward.compute = Seconds{b.forward_s};
  layer.recompute.compute = Seconds{b.recompute_s};
  layer.backward.compute = Seconds{b.backward_s};
  layer.backward_input.compute = Seconds{b.backward_s - b.weight_grad_s};
  layer.backward_weight.compute = Seconds{b.weight_grad_s};
  // Exposed collectives: forward's own, its repetition under recompute, and the rest backward's.
  const double repeated = b.forward_s > 0 ? b.recompute_s / b.forward_s : 0;
  const double again = repeats_all ? repeated : 0;
  const auto spread = [&](Seconds ListCost::*axis, double forward, double all) {
    layer.forward.*axis = Seconds{forward};
    layer.recompute.*axis = Seconds{forward * again};
    layer.backward.*axis = Seconds{all - forward * (1 + again)};
    layer.backward_input.*axis = layer.backward.*axis;
  };
  spread(&ListCost::tp, b.tp_forward_s, b.tp_s);
  spread(&ListCost::cp, b.cp_s / (3 + again), b.cp_s);
  spread(&ListCost::ep, b.ep_s / (2 + again), b.ep_s);
  // Host time that shows, in proportion to the device's.
  const double device = b.device_s();
  const auto host = [&](ListCost& c) {
    if (device > 0) c.host = Seconds{b.host_s * c.device().v / device};
  };
  for (ListCost* c : {&layer.forward,
                      &layer.recompute,
                      &layer.backward,
                      &layer.backward_input,
                      &layer.backward_weight}) {
    host(*c);
  }
  return layer;
}

/// The blocks' prices from the step model: every layer is the mean one.
void price_by_step_model(const StepStack& stack, const Plan& plan, ShardCosts& costs) {
  StepProblem problem = step_problem(stack, plan);
  const ShardLayout layout = shard_layout(plan.layout());
  const ShardCost shard = price_shard(problem, layout);
  const auto of = [&](BlockKind kind) -> BlockCosts& {
    return costs.blocks[static_cast<int>(kind)];
  };
  of(BlockKind::kDecoder) = layer_costs(shard.block, plan.layout().recompute == Recompute::kFull);
  of(BlockKind::kMoeDecoder) = of(BlockKind::kDecoder);
  if (plan.layout().recompute_layers > 0) {
    problem.work.recompute = RecomputeKind::kNone;
    of(BlockKind::kKeptDecoder) = layer_costs(price_shard(problem, layout).block, false);
    of(BlockKind::kKeptMoeDecoder) = of(BlockKind::kKeptDecoder);
  }
  split_in_two(of(BlockKind::kEmbedding), shard.embed_s, kEmbeddingForwardShare);
  split_in_two(of(BlockKind::kHead), shard.head_s + shard.mtp_s, kHeadForwardShare);
}

/// The blocks' prices as sums over their operators.
void price_by_operators(const Plan& plan, const CostModel& cost, ShardCosts& costs) {
  const Precision precision = plan.layout().precision;
  const ShardGroups groups = shard_groups(Mesh(plan.layout()), plan.cluster());
  for (int kind = 0; kind < kNumBlockKinds; ++kind) {
    const BlockGraph& b = costs.graph.blocks[kind];
    if (b.forward.empty()) continue;  // a kind that the plan does not have
    const auto price = [&](const std::vector<OperatorStep>& steps, bool forward) {
      return cost.list_time(steps, b.kind, forward, precision, groups);
    };
    BlockCosts& c = costs.blocks[kind];
    c.forward = price(b.forward, true);
    c.backward = price(b.backward, false);
    if (!b.recompute.empty()) c.recompute = price(b.recompute, true);
    c.backward_input = price(b.backward_input, false);
    c.backward_weight = price(b.backward_weight, false);
    // Host time is that of the whole backward, by operators: what one half cannot hide is not
    // hidden twice.
    const auto input_ops = static_cast<double>(b.backward_input.size());
    const auto weight_ops = static_cast<double>(b.backward_weight.size());
    c.backward_input.host = c.backward.host * (input_ops / (input_ops + weight_ops));
    c.backward_weight.host = c.backward.host * (weight_ops / (input_ops + weight_ops));
  }
}

/// Saved tensors leave behind their layer's forward and come back behind a backward; what takes
/// longer shows.
void add_activation_offload(const Plan& plan, ShardCosts& costs) {
  const MemoryTier tier = plan.layout().offload.activations;
  if (tier == MemoryTier::kDevice) return;
  for (int kind = 0; kind < kNumBlockKinds; ++kind) {
    if (!is_decoder(static_cast<BlockKind>(kind))) continue;
    const Bytes saved{std::max(0.0, costs.footprints.blocks[kind].forward.delta)};
    const Seconds t = saved / tier_bandwidth(plan.cluster().device, tier);
    BlockCosts& c = costs.blocks[kind];
    const auto shows = [&](const ListCost& behind) {
      return std::max(Seconds{}, t - behind.total());
    };
    const Seconds forward = shows(c.forward);
    const Seconds backward = shows(c.backward);
    c.forward.offload += forward;
    c.backward.offload += backward;
    c.backward_input.offload += backward;
  }
}

}  // namespace

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

std::shared_ptr<const ShardCosts> StageCostCache::shard(const Plan& plan, const CostModel& cost) {
  const Layout& l = plan.layout();
  auto& slot = shards_[{l.tp,
                        l.sp,
                        l.cp,
                        l.cp_kind,
                        l.ep,
                        l.expert_tp,
                        l.micro_batch,
                        l.recompute,
                        l.recompute_layers > 0,
                        l.flash_attention,
                        l.precision,
                        l.offload.activations}];
  if (slot) return slot;
  auto costs = std::make_shared<ShardCosts>();
  costs->graph = build_model_graph(plan, 0);
  costs->footprints = footprints(costs->graph);
  if (cost.step_stack() && l.precision != Precision::kFp32) {
    price_by_step_model(*cost.step_stack(), plan, *costs);
  } else {
    price_by_operators(plan, cost, *costs);
  }
  add_activation_offload(plan, *costs);
  return slot = std::move(costs);
}

std::shared_ptr<const StagePlacements> StageCostCache::placements(const Plan& plan) {
  const Layout& l = plan.layout();
  // What the first rank of a stage holds depends on how many replicas there are, not on how they
  // are dealt to axes.
  auto& slot = placements_[{l.tp,
                            l.sp,
                            l.ep,
                            l.expert_tp,
                            l.replicas(),
                            l.pp,
                            stage_order(l.schedule),
                            l.stages,
                            l.zero_stage == 3 ? l.persistence_threshold : 0}];
  if (slot) return slot;
  return slot = std::make_shared<const StagePlacements>(stage_placements(plan));
}

}  // namespace meshwright
