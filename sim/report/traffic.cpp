// SPDX-License-Identifier: Apache-2.0
#include "sim/report/traffic.h"

#include "sim/graph/model_graph.h"
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

void count_list(AxisTraffic& t, const std::vector<OperatorStep>& steps) {
  for (const OperatorStep& s : steps) {
    if (is_collective(s.op.kind)) count(t, s.op.bytes.v);
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
  AxisTraffic dp = axis("dp", GroupKind::kDp);
  dp.group_size *= plan.layout().model_copies();  // the copies are summed with the replicas
  AxisTraffic pp{.axis = "pp", .group_size = plan.layout().pp, .payload = {}};
  const int neighbour =
      mesh.rank_at_stage(rank, c.pp > 0 ? c.pp - 1 : std::min(1, plan.layout().pp - 1));
  pp.inside_node = inside_node({rank, neighbour}, node);

  const auto bucket_bytes = [&](const Action& a, DType dtype) {
    return static_cast<double>(placement.buckets[static_cast<size_t>(a.bucket)].padded_numel *
                               size_of(dtype));
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
          count_list(tp, list_of(g, a.kind));
        }
        break;
      case ActionKind::kSend:
      case ActionKind::kRecv:
        count(pp, boundary);
        break;
      case ActionKind::kSumCopies:
        for (const PartialRange& r : placement.buckets[static_cast<size_t>(a.bucket)].partial) {
          count(tp, static_cast<double>(r.numel * size_of(DType::kFloat32)));
        }
        break;
      case ActionKind::kSumTied:
        count(pp, bucket_bytes(a, DType::kFloat32));
        break;
      case ActionKind::kReduce:
        count(dp, bucket_bytes(a, DType::kFloat32));
        break;
      case ActionKind::kGather:
        count(dp, bucket_bytes(a, activation_dtype(plan.layout().precision)));
        break;
      case ActionKind::kPostRecv:
      case ActionKind::kWaitReduce:
      case ActionKind::kWaitGather:
      case ActionKind::kGradNorm:
      case ActionKind::kOptimizer:
        break;
    }
  }
  std::vector<AxisTraffic> out;
  for (const AxisTraffic& t : {tp, pp, dp}) {
    if (t.group_size > 1) out.push_back(t);
  }
  return out;
}

}  // namespace meshwright
