// StepReport: one training step as named terms, the same for predicted and measured.
//
// Reads: a Timeline (predicted by sim/simulator or measured by the worker). Feeds: compare,
// report.json, explain. Terms are those of the slowest rank and add up to step_time. Both sides go
// through terms_of_rank(), so that a term means the same on both: a wait for a peer that was not
// ready is a bubble, the transfer itself is exposed.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "sim/core/units.h"
#include "sim/mesh/mesh.h"
#include "sim/report/memory_bound.h"
#include "sim/report/timeline.h"

namespace meshwright {

enum class Term : uint8_t {
  kCompute,
  kRecompute,
  kExposedTp,
  kExposedCp,
  kExposedEp,
  kExposedPp,
  kExposedDp,
  kBubble,
  kOptimizer,
  kHost,
  kOther,
};
inline constexpr int kNumTerms = 11;

/// JSON key of a term: "compute_s", "exposed_tp_s", ...
[[nodiscard]] std::string_view key(Term term);

enum class MemoryTerm : uint8_t {
  kWeights,
  kGradients,
  kOptimizer,    ///< Adam moments, and the FP32 master copy where weights are not FP32.
  kActivations,  ///< All buffers of operators that are alive at the peak.
  kGathered,     ///< Parameters and gradients of blocks that ZeRO holds whole for a while.
  kOther,        ///< Rotary tables and the like.
};
inline constexpr int kNumMemoryTerms = 6;

/// JSON key: "weights_bytes", ...
[[nodiscard]] std::string_view key(MemoryTerm term);

struct StepReport {
  Seconds step_time;
  std::array<Seconds, kNumTerms> terms{};
  Bytes peak_memory;                            ///< Requested bytes, maximum over ranks.
  std::array<Bytes, kNumMemoryTerms> memory{};  ///< Of that rank, at its peak.
  std::optional<MemoryBound> memory_bound;      ///< Of that rank; predicted reports alone.

  [[nodiscard]] Seconds& operator[](Term t) { return terms[static_cast<size_t>(t)]; }
  [[nodiscard]] Seconds operator[](Term t) const { return terms[static_cast<size_t>(t)]; }
  [[nodiscard]] Bytes& operator[](MemoryTerm t) { return memory[static_cast<size_t>(t)]; }
  [[nodiscard]] Bytes operator[](MemoryTerm t) const { return memory[static_cast<size_t>(t)]; }
};

/// step_time and terms of `rank` from the timeline of one step. `mesh` finds the peers of sends and
/// ties; the timeline must hold at least one rank of every stage. What no span covers is host time
/// between actions.
[[nodiscard]] StepReport terms_of_rank(const Timeline& timeline, const Mesh& mesh, int rank);

/// terms_of_rank() of the rank with the longest step.
[[nodiscard]] StepReport terms_of_slowest_rank(const Timeline& timeline, const Mesh& mesh);

/// The report's JSON object {step_time_s, peak_memory_bytes, terms{}, memory{}} as text, and back.
[[nodiscard]] std::string to_json_text(const StepReport& report);
[[nodiscard]] Result<StepReport> parse_step_report(std::string_view text,
                                                   const std::string& origin);

}  // namespace meshwright
