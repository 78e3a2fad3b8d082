// LayoutPins: the axes of a layout that a person fixed on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/mesh/layout.h"

namespace meshwright {

/// Axes that a person pinned; unset ones are searched over, or keep their default.
struct LayoutPins {
  std::optional<int> dp, dp_replicate, dp_shard, tp, cp, pp, ep, virtual_stages, zero_stage,
      prefetch, recompute_layers;
  std::optional<int64_t> micro_batch, persistence_threshold, reduce_bucket;
  std::optional<bool> sp, flash_attention, expert_tp, reshard;
  std::optional<CpKind> cp_kind;
  std::optional<Recompute> recompute;
  std::optional<ScheduleKind> schedule;
  std::optional<GradientFormat> gradients;
  std::optional<MomentFormat> moments;
  std::optional<MemoryTier> offload_optimizer, offload_parameters, offload_activations;
  std::optional<std::vector<int>> stages;
  bool balance = false;  ///< Layers per stage by what blocks cost, where that is faster.
};

/// Writes what is pinned of the choices that no search varies (prefetch, reshard, recompute_layers,
/// formats, offload, ...).
void apply_fixed_choices(const LayoutPins& pins, Layout& layout);

/// `stages_flag` is empty, layers per stage, or "balanced".
///
/// Reads "tp=2,pp=2,zero_stage=1,sp=on,schedule=gpipe,recompute=full,micro_batch=2" and "3,5"
/// (layers per stage, which also pins pp where the first does not). Errors: unknown axis or word
/// (names the nearest), zero, negative or non-numeric degree.
[[nodiscard]] Result<LayoutPins> parse_layout_pins(const std::string& layout_flag,
                                                   const std::string& stages_flag);

}  // namespace meshwright
