// SPDX-License-Identifier: Apache-2.0
#include "sim/report/traffic.h"

#include <array>

#include "sim/graph/model_graph.h"
#include "sim/mesh/state_bytes.h"
#include "sim/schedule/program.h"

namespace meshwright {
namespace {

bool inside_node(const std::vector<int>& ranks, int devices_per_node) {
  for (const int r : ranks) {
    if (r / devices_per_node != ranks.front() / devices_per_node) return false;
  }
  return true;
}

void count(AxisTraffic& t, double bytes) {
  ++t.operations;
  t.payload += Bytes{bytes};
}

void count_list(std::array<AxisTraffic*, 3> axes, const std::vector<OperatorStep>& steps) {
  for (const OperatorStep& s : steps) {
    if (is_collective(s.op.kind)) count(*axes[static_cast<size_t>(s.op.group)], s.op.bytes.v);
  }
}

const std::vector<OperatorStep>& list_of(const BlockGraph& block, ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return block.forward;
    case ActionKind::kRecompute:
      return block.recompute;
    case ActionKind::kBackwardInput:
      return block.backward_input;
    case ActionKind::kBackwardWeight:
      return block.backward_weight;
    default:
      return block.backward;
  }
}

}  // namespace

std::vector<AxisTraffic> step_traffic(const Plan& plan, int rank) {
  const Mesh mesh(plan.layout());
  const MeshCoord c = mesh.coord(rank);
  const int node = plan.cluster().devices_per_node;
  const ModelGraph graph = build_model_graph(plan, c.tp);
  const RankPlacement placement = PlacementTable(plan).of_rank(rank);
  const BlockGraph& decoder = graph.of(BlockKind::kDecoder);
  const auto boundary =
      static_cast<double>(decoder.buffers[static_cast<size_t>(decoder.input)].bytes());
  const auto axis = [&](const char* name, GroupKind kind) {
    const std::vector<int> ranks = mesh.group(kind, rank);
    return AxisTraffic{.axis = name,
                       .group_size = static_cast<int>(ranks.size()),
                       .inside_node = inside_node(ranks, node),
                       .payload = {}};
  };
  AxisTraffic tp = axis("tp", GroupKind::kTp);
  AxisTraffic cp = axis("cp", GroupKind::kCp);
  AxisTraffic ep = axis("ep", GroupKind::kEp);
  AxisTraffic dp = axis("dp", GroupKind::kDp);
  AxisTraffic expert_dp = axis("expert_dp", GroupKind::kExpertDp);
  expert_dp.group_size *= plan.layout().model_copies();
  dp.group_size *= plan.layout().model_copies();  // the copies are summed with the replicas
  AxisTraffic pp{.axis = "pp", .group_size = plan.layout().pp, .payload = {}};
  const int neighbour =
      mesh.rank_at_stage(rank, c.pp > 0 ? c.pp - 1 : std::min(1, plan.layout().pp - 1));
  pp.inside_node = inside_node({rank, neighbour}, node);

  const StateBytes bytes = state_bytes(plan.layout());
  const auto bucket = [&](const Action& a) -> const Bucket& {
    return placement.buckets[static_cast<size_t>(a.bucket)];
  };
  const auto count_bucket = [&](AxisTraffic& t, const Action& a, double width) {
    count(t, width * static_cast<double>(bucket(a).padded_numel));
  };
  const auto replicas = [&](const Action& a) -> AxisTraffic& {
    return bucket(a).experts ? expert_dp : dp;
  };
  const Program program = build_program(plan);
  for (const Action& a : program.stages[static_cast<size_t>(c.pp)]) {
    switch (a.kind) {
      case ActionKind::kForward:
      case ActionKind::kRecompute:
      case ActionKind::kBackward:
      case ActionKind::kBackwardInput:
      case ActionKind::kBackwardWeight:
        for (int b = a.block_begin; b < a.block_end; ++b) {
          const BlockGraph& g = graph.block(b);
          count_list({&tp, &cp, &ep}, list_of(g, a.kind));
        }
        break;
      case ActionKind::kSend:
      case ActionKind::kRecv:
        count(pp, boundary);
        break;
      case ActionKind::kSumCopies:
        for (const PartialRange& r : bucket(a).partial) {
          count(tp, bytes.gradient * static_cast<double>(r.numel));
        }
        break;
      case ActionKind::kSumTied:
        count_bucket(pp, a, bytes.gradient);
        break;
      case ActionKind::kReduce:
        count_bucket(replicas(a), a, bytes.gradient);
        break;
      case ActionKind::kGather:
        count_bucket(replicas(a), a, bytes.weight);
        break;
      case ActionKind::kPostRecv:
      case ActionKind::kWaitReduce:
      case ActionKind::kWaitGather:
      case ActionKind::kRelease:
      case ActionKind::kGradNorm:
      case ActionKind::kOptimizer:
        break;
    }
  }
  std::vector<AxisTraffic> out;
  for (const AxisTraffic& t : {tp, cp, ep, pp, dp, expert_dp}) {
    if (t.group_size > 1 && t.operations > 0) out.push_back(t);
  }
  return out;
}

}  // namespace meshwright
