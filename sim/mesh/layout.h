// Layout: how a model is laid over ranks. One value, written by the planner or by a person, checked
// by validate().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/dtype.h"
#include "sim/core/result.h"

namespace meshwright {

/// Which forward operators are repeated before backward: none; the materialised attention scores
/// and their softmax (Korthikanti et al., arXiv:2205.05198); the whole layer.
enum class Recompute : uint8_t { kNone, kSelective, kFull };
enum class ScheduleKind : uint8_t { kGpipe, k1f1b };

[[nodiscard]] constexpr std::string_view to_string(Recompute r) {
  switch (r) {
    case Recompute::kNone:
      return "none";
    case Recompute::kSelective:
      return "selective";
    case Recompute::kFull:
      return "full";
  }
  return "";
}
[[nodiscard]] std::optional<Recompute> parse_recompute(std::string_view word);

[[nodiscard]] constexpr std::string_view to_string(ScheduleKind s) {
  return s == ScheduleKind::kGpipe ? "gpipe" : "1f1b";
}

/// Degrees per mesh axis and the choices that go with them.
struct Layout {
  int dp_replicate = 1;  ///< Full copies of the optimizer state.
  int dp_shard = 1;      ///< Ranks that share one copy (ZeRO).
  int tp = 1;
  bool sp = false;  ///< Sequence parallelism between the tensor-parallel regions; needs tp > 1.
  int cp = 1;
  int pp = 1;
  int ep = 1;
  int virtual_stages = 1;   ///< Model parts per pipeline rank.
  int64_t micro_batch = 1;  ///< Sequences per micro-batch and data-parallel rank.
  int zero_stage = 0;       ///< 0: nothing sharded; 1: optimizer state over dp_shard.
  Recompute recompute = Recompute::kNone;
  bool flash_attention = true;  ///< Fused attention, which never writes the scores to memory.
  ScheduleKind schedule = ScheduleKind::k1f1b;
  Precision precision = Precision::kBf16;
  std::vector<int> stages;  ///< Decoder layers per stage, first to last; one entry per stage.

  [[nodiscard]] int dp() const { return dp_replicate * dp_shard; }
  [[nodiscard]] int64_t world_size() const {
    return int64_t{pp} * dp_replicate * dp_shard * cp * tp;
  }
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Short text for tables: "dp2 tp2 sp pp2 mb1 zero1 1f1b recompute".
[[nodiscard]] std::string summary(const Layout& layout);

/// Decoder layers per stage, as equal as they go; earlier stages take the remainder last, because
/// the first and last stages also hold embedding and head: middle stages get the extra layers
/// first.
[[nodiscard]] std::vector<int> balanced_stages(int64_t num_layers, int pp);

/// Axes that a person pinned; unset ones are searched over.
struct LayoutPins {
  std::optional<int> dp, dp_replicate, dp_shard, tp, cp, pp, ep, virtual_stages, zero_stage;
  std::optional<int64_t> micro_batch;
  std::optional<bool> sp, flash_attention;
  std::optional<Recompute> recompute;
  std::optional<ScheduleKind> schedule;
  std::optional<std::vector<int>> stages;
};

/// Reads "tp=2,pp=2,zero=1,sp=on,schedule=gpipe,recompute=full,micro_batch=2" and "3,5" (layers per
/// stage, which also pins pp where the first does not). Errors: unknown axis (names the nearest),
/// zero, negative or non-numeric degree.
[[nodiscard]] Result<LayoutPins> parse_layout_pins(const std::string& layout_flag,
                                                   const std::string& stages_flag);

}  // namespace meshwright
