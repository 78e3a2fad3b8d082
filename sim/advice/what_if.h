// Counterfactuals: what would have to be different for another layout to win.
//
// Reads: the plans of a search and its cost model. Feeds: plan (short), explain --against. Each
// question changes one thing of the problem and prices both plans on it with simulate(), as they
// stand: the same layouts, not the best ones of the changed cluster. The value at which the order
// flips is found by bisection between today's value and the end of a stated range; where the order
// is the same at the end of the range and at points between, the answer is "not by this alone".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/planner/planner.h"

namespace meshwright {

enum class Knob : uint8_t {
  kInterNodeBandwidth,  ///< Bytes/s per device, one direction.
  kGlobalBatch,         ///< Sequences per step.
};
/// "inter_node_bandwidth_GBps", "global_batch_sequences".
[[nodiscard]] std::string_view key(Knob knob);

/// Searched range of a knob on one side of today's value, and the value at which the order flips.
struct Crossing {
  Knob knob = Knob::kInterNodeBandwidth;
  bool upwards = true;         ///< Towards more of it.
  double now = 0;              ///< In the units of Knob.
  double bound = 0;            ///< Last value that was tried.
  std::optional<double> flip;  ///< Here the challenger is faster, a step nearer to `now` it is not.
};

/// The time of `plan`'s layout where `knob` has another value; nothing where a rule forbids it.
[[nodiscard]] std::optional<Seconds> time_with(const Plan& plan,
                                               const CostModel& cost,
                                               Knob knob,
                                               double value);

/// Where `challenger` becomes faster than `winner`. `upwards` looks from today's value to more: up
/// to the bandwidth inside a node, or to 64 times the batch (less where the simulation would take
/// longer than a tenth of a second); downwards to 1.25 GB/s (10 Gbit/s), or to the smallest batch
/// that both layouts can run. Bandwidths are found to 0.5 %, batches to the next one that both
/// layouts can run. Bandwidth between nodes means nothing on one node: such a crossing has bound =
/// now.
[[nodiscard]] Crossing find_crossing(
    const Plan& winner, const Plan& challenger, const CostModel& cost, Knob knob, bool upwards);

/// What sets a challenger apart from the winner.
[[nodiscard]] std::vector<std::string> differing_choices(const Layout& winner,
                                                         const Layout& challenger);

struct Challenge {
  RankedPlan plan;
  std::vector<std::string> differs_in;  ///< "tp", "pp", "zero", "recompute", ...
  std::vector<Crossing> crossings;      ///< Both directions of each knob that can matter.
};

/// The best layout of `candidates` (PlannerResult::all_feasible) that differs from the winner in
/// tp, the best that differs in pp, and so on; each once, fastest first, at most `limit`.
[[nodiscard]] std::vector<RankedPlan> challengers(const std::vector<Candidate>& candidates,
                                                  const RankedPlan& winner,
                                                  const CostModel& cost,
                                                  size_t limit);

/// `challenger` against `winner`, with all crossings.
[[nodiscard]] Challenge challenge(const RankedPlan& winner,
                                  const RankedPlan& challenger,
                                  const CostModel& cost);

/// A layout near the winner that is faster and needs more memory than a device has.
struct MemoryChallenge {
  Plan plan;
  Seconds step_time;
  Bytes needed;  ///< Peak and what is reserved: memory that a device must have.
};
/// The fastest layout near `winner` that fits into `factor` times the memory of a device; nothing
/// when more memory would not make the step at least 1 % faster.
[[nodiscard]] std::optional<MemoryChallenge> with_more_memory(const RankedPlan& winner,
                                                              const CostModel& cost,
                                                              double factor);

}  // namespace meshwright
