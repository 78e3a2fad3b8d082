// search(): every layout of a space, evaluated in full, and the best of them.
//
// Reads: StepProblem, SearchSpace. Feeds: the planner and tests/bench/search_bench. Nothing is
// pruned: time and memory of each layout are computed, also where memory rejects it. It is fast
// because what layouts share is computed once: a shard's cost per (tp, cp, ep, micro-batch,
// recompute, form), a stage's memory per layout without its networks and overlaps. A test holds
// every value to evaluate(), bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/search/search_space.h"

namespace meshwright {

enum class SearchGoal : uint8_t { kTime, kMemory };

struct SearchOptions {
  StateConvention convention = StateConvention::kMegatron;
  double capacity_bytes = 0;  ///< Of a device, for the point estimate.
  SearchGoal goal = SearchGoal::kTime;
  size_t top_k = 5;
  int threads = 0;  ///< 0: one per core. The result does not depend on it.
  /// Called by the calling thread now and then with the layouts evaluated so far; may be empty.
  std::function<void(int64_t)> progress;
  /// Asked by the calling thread now and then; true ends the search with what is evaluated.
  std::function<bool()> cancelled;
};

struct Found {
  StepCandidate candidate;
  Evaluation value;
  int64_t ordinal = 0;  ///< Position in the space; between equals the first is better.
};

struct SearchResult {
  int64_t evaluated = 0;
  int64_t fits = 0;
  int64_t too_big = 0;        ///< For the device's memory.
  int64_t unplaceable = 0;    ///< Of the rest, groups on NVLink that are wider than its domain.
  std::vector<Found> best;    ///< Of those that fit, best first, at most top_k.
  std::vector<Found> pareto;  ///< Of those that fit, in order of time: no other is as good in both.
};

[[nodiscard]] SearchResult search(const StepProblem& problem,
                                  const SearchSpace& space,
                                  const SearchOptions& options);

/// Every candidate of the space in the order of their ordinals: what search() walks, one by one.
void for_each_candidate(const StepProblem& problem,
                        const SearchSpace& space,
                        const std::function<void(const StepCandidate&)>& visit);

}  // namespace meshwright
