// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/replay.h"

#include <algorithm>

#include "sim/mesh/state_bytes.h"

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

/// Bytes alive on top of the resident ones, by term, and what they were at their peak.
class Replay {
 public:
  void walk(const ListFootprint& f) {
    mark(f.peak);
    activations_ += f.delta;
  }
  void allocate(double bytes) {
    activations_ += bytes;
    mark(0);
  }
  void release(double bytes) { activations_ -= bytes; }
  void gather(double bytes) {
    gathered_ += bytes;
    mark(0);
  }
  void drop(double bytes) { gathered_ -= bytes; }
  [[nodiscard]] double peak_activations() const { return peak_activations_; }
  [[nodiscard]] double peak_gathered() const { return peak_gathered_; }

 private:
  void mark(double above) {
    if (activations_ + above + gathered_ <= peak_activations_ + peak_gathered_) return;
    peak_activations_ = activations_ + above;
    peak_gathered_ = gathered_;
  }

  double activations_ = 0, gathered_ = 0;
  double peak_activations_ = 0, peak_gathered_ = 0;
};

}  // namespace

double weight_bytes(const Plan& plan, const Bucket& b) {
  const double compute = state_bytes(plan.layout()).weight;
  return b.frozen ? frozen_weight_bytes(plan.workload().lora->base, compute) : compute;
}

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
  const StateBytes bytes = state_bytes(l);
  double weights = 0, gradients = 0, optimizer = 0;
  for (const Bucket& b : placement.buckets) {
    const auto numel = static_cast<double>(b.padded_numel);
    const double shards = b.experts ? l.expert_shards() : l.shards();
    weights += numel * weight_bytes(plan, b) / (l.zero_stage >= 3 && !b.persistent ? shards : 1);
    if (b.frozen) continue;
    const bool whole = l.zero_stage < 2 || b.whole_at_end;
    gradients += numel * bytes.gradient / (whole ? 1 : shards);
    optimizer += numel * bytes.optimizer / (l.zero_stage >= 1 ? shards : 1);
  }
  if (l.offload.parameters != MemoryTier::kDevice) weights = 0;
  if (l.offload.optimizer != MemoryTier::kDevice) optimizer = 0;
  MemoryProfile p;
  const auto set = [&](MemoryTerm t, double n) {
    p.at_peak[static_cast<size_t>(t)] = Bytes{n};
    p.peak += Bytes{n};
  };
  set(MemoryTerm::kWeights, weights);
  set(MemoryTerm::kGradients, gradients);
  set(MemoryTerm::kOptimizer, optimizer);
  set(MemoryTerm::kOther,
      4.0 * static_cast<double>(plan.workload().seq_len * plan.model().head_dim));  // cos, sin
  return p;
}

MemoryProfile replay_stage(const Plan& plan,
                           const StageFootprints& f,
                           const Program& program,
                           const RankPlacement& placement,
                           int stage) {
  Replay replay;
  const Layout& l = plan.layout();
  const StateBytes bytes = state_bytes(l);
  const auto kind = [&](int block) { return block_kind(plan, block); };
  const auto of = [&](int block) -> const BlockFootprints& {
    return f.blocks[static_cast<int>(kind(block))];
  };
  // Activations that leave for another tier pass through a buffer of one layer's size.
  const bool offloads = l.offload.activations != MemoryTier::kDevice;
  const auto leaves = [&](int block) {
    return offloads && is_decoder(kind(block)) ? std::max(0.0, of(block).forward.delta) : 0.0;
  };
  double staging = 0;
  for (int b = 0; b < num_blocks(plan.model()); ++b) staging = std::max(staging, leaves(b));
  replay.allocate(staging);
  // Whole gradients alive under ZeRO-2 and 3, per bucket.
  std::vector<char> whole(placement.buckets.size());
  const auto write_gradient = [&](int block) {
    if (l.zero_stage < 2) return;
    for (size_t i = 0; i < placement.buckets.size(); ++i) {
      const Bucket& b = placement.buckets[i];
      if (b.block != block || b.frozen || whole[i] != 0 || b.whole_at_end) continue;
      whole[i] = 1;
      replay.gather(bytes.gradient * static_cast<double>(b.padded_numel));
    }
  };
  // Messages alive per virtual stage and direction: sends under way, receives posted ahead.
  const auto channels = static_cast<size_t>(2 * plan.stage_map().size());
  std::vector<int> pending(channels);
  std::vector<int> posted(channels);
  const auto channel = [](const Action& a) {
    return static_cast<size_t>(2 * a.virtual_stage + static_cast<int>(a.direction));
  };
  const auto padded = [&](const Action& a) {
    return static_cast<double>(placement.buckets[static_cast<size_t>(a.bucket)].padded_numel);
  };
  const auto weight = [&](const Action& a) {
    return weight_bytes(plan, placement.buckets[static_cast<size_t>(a.bucket)]);
  };
  const auto backwards = [&](const Action& a, ListFootprint BlockFootprints::*list) {
    for (int b = a.block_end - 1; b >= a.block_begin; --b) {
      const bool first_reader = a.kind != ActionKind::kBackwardWeight && !plan.recomputes(b);
      if (first_reader) replay.allocate(leaves(b));
      write_gradient(b);
      replay.walk(of(b).*list);
    }
  };
  for (const Action& a : program.stages[static_cast<size_t>(stage)]) {
    switch (a.kind) {
      case ActionKind::kForward:
        for (int b = a.block_begin; b < a.block_end; ++b) {
          replay.walk(of(b).forward);
          replay.release(leaves(b));
        }
        break;
      case ActionKind::kRecompute:
        for (int b = a.block_begin; b < a.block_end; ++b) {
          replay.allocate(leaves(b));
          replay.walk(of(b).recompute);
        }
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
      case ActionKind::kWaitReduce:
        if (char& alive = whole[static_cast<size_t>(a.bucket)]; alive != 0) {
          replay.drop(bytes.gradient * padded(a));
          alive = 0;
        }
        break;
      case ActionKind::kGather:
        if (l.zero_stage == 3 && !placement.buckets[static_cast<size_t>(a.bucket)].persistent)
          replay.gather(weight(a) * padded(a));
        break;
      case ActionKind::kRelease:
        replay.drop(weight(a) * padded(a));
        break;
      case ActionKind::kSumCopies:
      case ActionKind::kSumTied:
      case ActionKind::kReduce:
      case ActionKind::kOptimizer:
      case ActionKind::kWaitGather:
        break;  // in place on resident memory
    }
  }
  MemoryProfile profile = resident_memory(plan, placement);
  const auto set = [&](MemoryTerm t, double n) {
    profile.at_peak[static_cast<size_t>(t)] = Bytes{n};
    profile.peak += Bytes{n};
  };
  set(MemoryTerm::kActivations, replay.peak_activations());
  set(MemoryTerm::kGathered, replay.peak_gathered());
  return profile;
}

MemoryProfile replay_memory(const Plan& plan, const Program& program, int rank) {
  const MeshCoord c = Mesh(plan.layout()).coord(rank);
  const ModelGraph graph = build_model_graph(plan, c.tp);
  return replay_stage(plan, footprints(graph), program, PlacementTable(plan).of_rank(rank), c.pp);
}

}  // namespace meshwright
