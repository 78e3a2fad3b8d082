// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/replay.h"

#include <algorithm>

namespace meshwright {
namespace {

ListFootprint walk(const BlockGraph& block, const std::vector<OperatorStep>& steps) {
  ListFootprint f;
  const auto bytes = [&](BufferId b) {
    return static_cast<double>(block.buffers[static_cast<size_t>(b)].bytes());
  };
  for (const OperatorStep& step : steps) {
    for (const BufferId b : step.allocates) f.delta += bytes(b);
    f.peak = std::max(f.peak, f.delta + step.op.workspace.v);
    for (const BufferId b : step.releases) f.delta -= bytes(b);
  }
  return f;
}

/// Bytes alive on top of the resident ones, and their peak.
class Replay {
 public:
  void walk(const ListFootprint& f) {
    peak_ = std::max(peak_, live_ + f.peak);
    live_ += f.delta;
  }
  void allocate(double bytes) {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }
  void release(double bytes) { live_ -= bytes; }
  [[nodiscard]] double peak() const { return peak_; }

 private:
  double live_ = 0;
  double peak_ = 0;
};

}  // namespace

StageFootprints footprints(const ModelGraph& graph) {
  StageFootprints out;
  for (int kind = 0; kind < kNumBlockKinds; ++kind) {
    const BlockGraph& b = graph.blocks[kind];
    out.blocks[kind] = {walk(b, b.forward),
                        walk(b, b.recompute),
                        walk(b, b.backward),
                        walk(b, b.backward_input),
                        walk(b, b.backward_weight)};
  }
  const BlockGraph& decoder = graph.of(BlockKind::kDecoder);
  out.boundary = static_cast<double>(decoder.buffers[static_cast<size_t>(decoder.input)].bytes());
  return out;
}

MemoryProfile resident_memory(const Plan& plan, const RankPlacement& placement) {
  const Layout& l = plan.layout();
  const auto padded = static_cast<double>(placement.padded_parameters());
  const bool fp32 = l.precision == Precision::kFp32;
  const double shards = l.zero_stage >= 1 ? l.dp_shard : 1;
  MemoryProfile p;
  const auto set = [&](MemoryTerm t, double bytes) {
    p.at_peak[static_cast<size_t>(t)] = Bytes{bytes};
    p.peak += Bytes{bytes};
  };
  set(MemoryTerm::kWeights, padded * static_cast<double>(size_of(activation_dtype(l.precision))));
  set(MemoryTerm::kGradients, padded * 4.0);
  set(MemoryTerm::kOptimizer,
      padded / shards * (fp32 ? 8.0 : 12.0));  // m, v and, unless FP32, the master copy
  set(MemoryTerm::kOther,
      4.0 * static_cast<double>(plan.workload().seq_len * plan.model().head_dim));  // cos, sin
  return p;
}

MemoryProfile replay_stage(const Plan& plan,
                           const StageFootprints& f,
                           const Program& program,
                           int stage,
                           MemoryProfile resident) {
  Replay replay;
  const auto of = [&](int block) -> const BlockFootprints& {
    return f.blocks[static_cast<int>(block_kind(plan.model(), block))];
  };
  // Messages alive per virtual stage and direction: sends under way, receives posted ahead.
  const auto channels = static_cast<size_t>(2 * plan.stage_map().size());
  std::vector<int> pending(channels);
  std::vector<int> posted(channels);
  const auto channel = [](const Action& a) {
    return static_cast<size_t>(2 * a.virtual_stage + static_cast<int>(a.direction));
  };
  const auto backwards = [&](const Action& a, ListFootprint BlockFootprints::*list) {
    for (int b = a.block_end - 1; b >= a.block_begin; --b) replay.walk(of(b).*list);
  };
  for (const Action& a : program.stages[static_cast<size_t>(stage)]) {
    switch (a.kind) {
      case ActionKind::kForward:
        for (int b = a.block_begin; b < a.block_end; ++b) replay.walk(of(b).forward);
        break;
      case ActionKind::kRecompute:
        for (int b = a.block_begin; b < a.block_end; ++b) replay.walk(of(b).recompute);
        break;
      case ActionKind::kBackward:
        backwards(a, &BlockFootprints::backward);
        break;
      case ActionKind::kBackwardInput:
        backwards(a, &BlockFootprints::backward_input);
        break;
      case ActionKind::kBackwardWeight:
        backwards(a, &BlockFootprints::backward_weight);
        break;
      case ActionKind::kPostRecv:
        ++posted[channel(a)];
        replay.allocate(f.boundary);
        break;
      case ActionKind::kRecv: {
        int& ahead = posted[channel(a)];
        ahead > 0 ? static_cast<void>(--ahead) : replay.allocate(f.boundary);
        break;
      }
      case ActionKind::kSend:
        if (pending[channel(a)] == program.pending_sends) {
          replay.release(f.boundary);
        } else {
          ++pending[channel(a)];
        }
        break;
      case ActionKind::kGradNorm:
        for (const int sends : pending) replay.release(sends * f.boundary);
        pending.assign(channels, 0);
        break;
      case ActionKind::kSumCopies:
      case ActionKind::kSumTied:
      case ActionKind::kReduce:
      case ActionKind::kWaitReduce:
      case ActionKind::kOptimizer:
      case ActionKind::kGather:
      case ActionKind::kWaitGather:
        break;  // in place on resident memory
    }
  }
  resident.at_peak[static_cast<size_t>(MemoryTerm::kActivations)] = Bytes{replay.peak()};
  resident.peak += Bytes{replay.peak()};
  return resident;
}

MemoryProfile replay_memory(const Plan& plan, const Program& program, int rank) {
  const MeshCoord c = Mesh(plan.layout()).coord(rank);
  const ModelGraph graph = build_model_graph(plan, c.tp);
  return replay_stage(plan,
                      footprints(graph),
                      program,
                      c.pp,
                      resident_memory(plan, PlacementTable(plan).of_rank(rank)));
}

}  // namespace meshwright
