// Layout: how a model is laid over ranks. One value, written by the planner or by a person, checked
// by validate().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/dtype.h"
#include "sim/mesh/layout_choices.h"

namespace meshwright {

/// Degrees per mesh axis and the choices that go with them.
struct Layout {
  int dp_replicate = 1;  ///< Full copies of the optimizer state.
  int dp_shard = 1;      ///< Ranks that share one copy (ZeRO), together with those of cp.
  int tp = 1;
  bool sp = false;  ///< Sequence parallelism between the tensor-parallel regions; needs tp > 1.
  int cp = 1;
  CpKind cp_kind = CpKind::kRing;
  int pp = 1;
  /// Ranks that share a layer's experts: consecutive ones of those with different tokens.
  int ep = 1;
  /// Each expert's width is split over tp. Otherwise experts stay whole and ep runs over the tp
  /// ranks too.
  bool expert_tp = true;
  int virtual_stages = 1;   ///< Model parts per pipeline rank (interleaved, zb_v).
  int64_t micro_batch = 1;  ///< Sequences per micro-batch and data-parallel rank.
  /// Sharded over dp_shard x cp: 0 nothing; 1 optimizer state; 2 and gradients; 3 and parameters.
  int zero_stage = 0;
  /// ZeRO-3: blocks gathered ahead of the one that runs; so many, and itself, are alive at once.
  int prefetch = 1;
  bool reshard = true;  ///< ZeRO-3: drop a block's parameters after forward and gather them again.
  /// ZeRO-3: tensors of fewer elements stay whole on every rank.
  int64_t persistence_threshold = 0;
  /// Gradients of neighbouring blocks leave in one collective of at least so many elements, or when
  /// their backward ends; 0: each block's by itself.
  int64_t reduce_bucket = 0;
  Recompute recompute = Recompute::kNone;
  int recompute_layers = 0;     ///< The first layers of each part that recompute; 0: all.
  bool flash_attention = true;  ///< Fused attention, which never writes the scores to memory.
  ScheduleKind schedule = ScheduleKind::k1f1b;
  Precision precision = Precision::kBf16;
  GradientFormat gradients = GradientFormat::kFp32;
  MomentFormat moments = MomentFormat::kFp32;
  Offload offload;
  /// Decoder layers per part of the model, in model order: pp * virtual_stages entries. Part i is
  /// on rank i mod pp, under zb_v on i or 2 pp - 1 - i, under dualpipe on i and on pp - 1 - i.
  std::vector<int> stages;

  [[nodiscard]] int dp() const { return dp_replicate * dp_shard; }
  /// Ranks that hold the same dense parameters and see different tokens.
  [[nodiscard]] int replicas() const { return dp() * cp; }
  /// Ranks over which ZeRO shards the dense parameters' states.
  [[nodiscard]] int shards() const { return dp_shard * cp; }
  /// Ranks that an expert's width is split over.
  [[nodiscard]] int expert_tp_degree() const { return expert_tp ? tp : 1; }
  /// Ranks that hold the same experts, and those of them over which ZeRO shards their states.
  [[nodiscard]] int expert_replicas() const { return replicas() * tp / expert_tp_degree() / ep; }
  [[nodiscard]] int expert_shards() const {
    const int ranks = shards() * tp / expert_tp_degree();
    return ranks > ep ? ranks / ep : 1;
  }
  /// Whether a tensor of `numel` elements stays whole although parameters are sharded.
  [[nodiscard]] bool persists(int64_t numel) const {
    return zero_stage == 3 && numel < persistence_threshold;
  }
  [[nodiscard]] int num_parts() const { return pp * virtual_stages; }
  /// Copies of the parameters in one pipeline.
  [[nodiscard]] int model_copies() const {
    return stage_order(schedule) == StageOrder::kMirrored ? 2 : 1;
  }
  [[nodiscard]] int64_t world_size() const {
    return int64_t{pp} * dp_replicate * dp_shard * cp * tp;
  }
  /// Whether the layer at `index` of its part repeats its forward.
  [[nodiscard]] bool recomputes(int index) const {
    return recompute != Recompute::kNone && (recompute_layers == 0 || index < recompute_layers);
  }
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Short text for tables: "dp2 tp2 sp pp2 mb1 zero1 1f1b recompute".
[[nodiscard]] std::string summary(const Layout& layout);

/// Decoder layers per part, as equal as they go; the first and the last part take of the remainder
/// last, because they also hold embedding and head.
[[nodiscard]] std::vector<int> balanced_stages(int64_t num_layers, int num_parts);

}  // namespace meshwright
