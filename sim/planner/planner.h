// Planner: every legal layout of a problem, the best ones, and why the others lose.
//
// Reads: a Problem, what the user pinned, a CostModel. Enumerates all degrees whose product is the
// number of devices (context parallelism from 8,192 tokens up), all micro-batches that divide the
// batch, all schedules, ZeRO 0 to 3, recompute, sequence parallelism and every spread of experts
// (on local ranks those that the worker runs); ranks by the closed form
// (estimate()) and re-ranks the best by the event simulation (simulate()). Every layout is timed;
// memory is replayed from the fastest on until enough fit (of all where asked for, or few), so that
// no slower layout could be among the best: examined = feasible + all rejected.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/mesh/layout_pins.h"
#include "sim/plan/plan.h"
#include "sim/simulator/simulate.h"

namespace meshwright {

struct PlannerOptions {
  int top_k = 5;
  LayoutPins pins;
  /// Called now and then with (examined so far, total); may be empty.
  std::function<void(int64_t, int64_t)> progress;
  /// Asked now and then; true ends the search, and the result is that of the layouts examined so
  /// far. May be empty.
  std::function<bool()> cancelled;
  int threads = 0;             ///< 0: one per core. The result does not depend on it.
  bool keep_feasible = false;  ///< Fill PlannerResult::all_feasible with those that were found.
  bool replay_all = false;     ///< Find all that fit, not enough of the fastest.
};

struct RankedPlan {
  Plan plan;
  Simulation simulation;
};

/// A layout that fits, as the closed form sees it.
struct Candidate {
  Plan plan;
  Seconds time;
  Bytes peak;  ///< The peak that simulate() would report.
};

/// Layouts that break the same rule; `example` is the first of them.
struct Rejection {
  std::string rule;
  int64_t count = 0;
  std::string example;  ///< Layout and message.
};

struct PlannerResult {
  int64_t examined = 0;
  int64_t feasible = 0;
  std::vector<RankedPlan> plans;        ///< Best first, at most top_k.
  std::vector<Rejection> rejected;      ///< Most frequent first.
  std::vector<Candidate> all_feasible;  ///< By time of the closed form; empty unless asked for.
  double elapsed_s = 0;
};

/// The candidates of a problem, before any rule. Deterministic order.
[[nodiscard]] std::vector<Layout> enumerate_layouts(const Problem& problem, const LayoutPins& pins);

[[nodiscard]] PlannerResult plan_layouts(const std::shared_ptr<const Problem>& problem,
                                         const CostModel& cost,
                                         const PlannerOptions& options);

/// Which term makes `loser` slower than `winner`, and by how much; nothing when it is not slower.
struct TermDifference {
  Term term;
  Seconds difference;
};
[[nodiscard]] std::optional<TermDifference> deciding_term(const StepReport& winner,
                                                          const StepReport& loser);

}  // namespace meshwright
