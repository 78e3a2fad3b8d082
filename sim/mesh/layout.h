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

/// Pipeline schedules; their orders are in sim/schedule/pipeline.
enum class ScheduleKind : uint8_t {
  kGpipe,        ///< All forwards, then all backwards.
  k1f1b,         ///< One forward, one backward (arXiv:2006.09503).
  kInterleaved,  ///< 1F1B over several parts per rank (arXiv:2104.04473).
  kZbH1,         ///< Split backward, memory of 1F1B (arXiv:2401.10241).
  kZbH2,         ///< Split backward, twice the memory.
  kZbV,          ///< Split backward, two parts per rank in a V.
  kDualPipe,     ///< From both ends at once, two copies of the parameters (arXiv:2412.19437).
};
inline constexpr int kNumScheduleKinds = 7;

/// How the parts of the model are dealt to pipeline ranks.
enum class StageOrder : uint8_t {
  kLoop,      ///< Part i on rank i mod pp.
  kV,         ///< Two parts per rank: down the ranks and back up.
  kMirrored,  ///< Two copies of the model: part i on rank i, its copy on rank pp - 1 - i.
};

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

/// "gpipe", "1f1b", "interleaved", "zb_h1", "zb_h2", "zb_v", "dualpipe".
[[nodiscard]] std::string_view to_string(ScheduleKind s);
[[nodiscard]] std::optional<ScheduleKind> schedule_named(std::string_view name);
/// All names, in the order of the enumerators.
[[nodiscard]] std::vector<std::string> schedule_names();

[[nodiscard]] constexpr StageOrder stage_order(ScheduleKind s) {
  return s == ScheduleKind::kZbV        ? StageOrder::kV
         : s == ScheduleKind::kDualPipe ? StageOrder::kMirrored
                                        : StageOrder::kLoop;
}
/// The fewest micro-batches with which a schedule fills its pipeline of `num_ranks`.
[[nodiscard]] int64_t min_micro_batches(ScheduleKind schedule, int num_ranks);
/// Whether some backward passes run as input gradient first and weight gradient later.
[[nodiscard]] constexpr bool splits_backward(ScheduleKind s) { return s >= ScheduleKind::kZbH1; }

/// Degrees per mesh axis and the choices that go with them.
struct Layout {
  int dp_replicate = 1;  ///< Full copies of the optimizer state.
  int dp_shard = 1;      ///< Ranks that share one copy (ZeRO).
  int tp = 1;
  bool sp = false;  ///< Sequence parallelism between the tensor-parallel regions; needs tp > 1.
  int cp = 1;
  int pp = 1;
  int ep = 1;
  int virtual_stages = 1;   ///< Model parts per pipeline rank (interleaved, zb_v).
  int64_t micro_batch = 1;  ///< Sequences per micro-batch and data-parallel rank.
  int zero_stage = 0;       ///< 0: nothing sharded; 1: optimizer state over dp_shard.
  Recompute recompute = Recompute::kNone;
  bool flash_attention = true;  ///< Fused attention, which never writes the scores to memory.
  ScheduleKind schedule = ScheduleKind::k1f1b;
  Precision precision = Precision::kBf16;
  /// Decoder layers per part of the model, in model order: pp * virtual_stages entries. Part i is
  /// on rank i mod pp, under zb_v on i or 2 pp - 1 - i, under dualpipe on i and on pp - 1 - i.
  std::vector<int> stages;

  [[nodiscard]] int dp() const { return dp_replicate * dp_shard; }
  [[nodiscard]] int num_parts() const { return pp * virtual_stages; }
  /// Copies of the parameters in one pipeline.
  [[nodiscard]] int model_copies() const {
    return stage_order(schedule) == StageOrder::kMirrored ? 2 : 1;
  }
  [[nodiscard]] int64_t world_size() const {
    return int64_t{pp} * dp_replicate * dp_shard * cp * tp;
  }
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Short text for tables: "dp2 tp2 sp pp2 mb1 zero1 1f1b recompute".
[[nodiscard]] std::string summary(const Layout& layout);

/// Decoder layers per part, as equal as they go; the first and the last part take of the remainder
/// last, because they also hold embedding and head.
[[nodiscard]] std::vector<int> balanced_stages(int64_t num_layers, int num_parts);

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
