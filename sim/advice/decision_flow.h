// The rule book's choice of parallelism, evaluated on the user's numbers and laid beside the
// search.
//
// Reads: a Problem, its CostModel and a search (PlannerOptions::keep_feasible). Feeds: advise. The
// flow: fits one device -> DDP; fits a node when states are sharded -> FSDP/ZeRO; fits with tensor
// parallelism inside a node and ZeRO -> that; else pipelines. The flow stops at the first that
// fits; the search prices them all: where they differ, both are shown with their times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/planner/planner.h"

namespace meshwright {

enum class Strategy : uint8_t { kDdp, kSharded, kTensorSharded, kPipeline, kNone };

/// "DDP", "FSDP / ZeRO", "TP + ZeRO", "PP + TP + ZeRO", "nothing".
[[nodiscard]] std::string_view to_string(Strategy strategy);

/// One question of the flow with the figures that answer it.
struct FlowStep {
  Strategy leads_to = Strategy::kDdp;
  std::string question;
  bool yes = false;
  Bytes needed;  ///< Per device, at the least: see least_memory.h.
  Bytes available;
  std::string evidence;
  std::string note;  ///< Where the chapter's figure differs; may be empty.
};

struct DecisionFlow {
  std::vector<FlowStep> steps;  ///< Up to the first yes.
  Strategy strategy = Strategy::kNone;
  /// The fastest layout of that strategy; nothing when none fits.
  std::optional<RankedPlan> best;
};

/// `found` is the search under `pins` and needs all_feasible. ZeRO-2 and 3 are searched here where
/// the strategy is one of sharding.
[[nodiscard]] DecisionFlow decide(const std::shared_ptr<const Problem>& problem,
                                  const CostModel& cost,
                                  const LayoutPins& pins,
                                  const PlannerResult& found);

/// Whether a layout is of a strategy; kPipeline takes any.
[[nodiscard]] bool follows(const Layout& layout, Strategy strategy, int devices_per_node);

}  // namespace meshwright
