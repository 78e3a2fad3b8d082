// The choices of a layout that are not degrees, each with the words by which it is written.
#pragma once

#include <cstdint>

#include "sim/core/enum_names.h"

namespace meshwright {

/// Which forward operators are repeated before backward: none; the materialised attention scores
/// and their softmax (Korthikanti et al., arXiv:2205.05198); the whole layer.
enum class Recompute : uint8_t { kNone, kSelective, kFull };
inline constexpr EnumNames<Recompute, 3> kRecomputeNames{{"none", "selective", "full"}};

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
inline constexpr EnumNames<ScheduleKind, kNumScheduleKinds> kScheduleNames{
    {"gpipe", "1f1b", "interleaved", "zb_h1", "zb_h2", "zb_v", "dualpipe"}};

/// How the parts of the model are dealt to pipeline ranks.
enum class StageOrder : uint8_t {
  kLoop,      ///< Part i on rank i mod pp.
  kV,         ///< Two parts per rank: down the ranks and back up.
  kMirrored,  ///< Two copies of the model: part i on rank i, its copy on rank pp - 1 - i.
};

/// How context parallelism spreads attention: keys and values travel around the ring of ranks
/// (arXiv:2310.01889; each rank holds an early and a late piece of the sequence, so that the causal
/// work is equal), or all-to-all turns sequence shards into head shards (arXiv:2309.14509).
enum class CpKind : uint8_t { kRing, kUlysses };
inline constexpr EnumNames<CpKind, 2> kCpKindNames{{"ring", "ulysses"}};

/// Format of accumulated and reduced gradients, 4 or 2 bytes: Megatron's main gradients, or
/// DeepSpeed's and FSDP's.
enum class GradientFormat : uint8_t { kFp32, kBf16 };
inline constexpr EnumNames<GradientFormat, 2> kGradientFormatNames{{"fp32", "bf16"}};

/// Format of Adam's two moments: 4, 2 or 1 bytes each. The master copy stays FP32.
enum class MomentFormat : uint8_t { kFp32, kBf16, kInt8 };
inline constexpr EnumNames<MomentFormat, 3> kMomentFormatNames{{"fp32", "bf16", "int8"}};

/// Where a state lives between its uses.
enum class MemoryTier : uint8_t { kDevice, kHost, kNvme };
inline constexpr EnumNames<MemoryTier, 3> kMemoryTierNames{{"device", "host", "nvme"}};

/// States that another memory tier may hold.
struct Offload {
  MemoryTier optimizer = MemoryTier::kDevice;    ///< Master copy and moments; updated on the host.
  MemoryTier parameters = MemoryTier::kDevice;   ///< Fetched layer by layer; needs ZeRO-3.
  MemoryTier activations = MemoryTier::kDevice;  ///< Saved tensors, until backward.
  [[nodiscard]] bool any() const {
    return optimizer != MemoryTier::kDevice || parameters != MemoryTier::kDevice ||
           activations != MemoryTier::kDevice;
  }
  friend bool operator==(const Offload&, const Offload&) = default;
};

[[nodiscard]] constexpr StageOrder stage_order(ScheduleKind s) {
  return s == ScheduleKind::kZbV        ? StageOrder::kV
         : s == ScheduleKind::kDualPipe ? StageOrder::kMirrored
                                        : StageOrder::kLoop;
}
/// The fewest micro-batches with which a schedule fills its pipeline of `num_ranks`.
[[nodiscard]] int64_t min_micro_batches(ScheduleKind schedule, int num_ranks);
/// Whether some backward passes run as input gradient first and weight gradient later.
[[nodiscard]] constexpr bool splits_backward(ScheduleKind s) { return s >= ScheduleKind::kZbH1; }

[[nodiscard]] constexpr std::string_view to_string(Recompute r) { return kRecomputeNames(r); }
[[nodiscard]] constexpr std::string_view to_string(ScheduleKind s) { return kScheduleNames(s); }

}  // namespace meshwright
