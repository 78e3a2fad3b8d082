// SPDX-License-Identifier: Apache-2.0
#include "sim/search/search.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <tuple>

#include "sim/search/space_walk.h"

namespace meshwright {
namespace {

constexpr int kOrdinalBits = 40;  // of a layout within its group

bool on_nvlink_fits(const StepCandidate& c, double domain) {
  const StepLayout& l = c.layout;
  double width = 1;
  if (l.shard.tp_tier == NetworkTier::kNvlink) width *= l.shard.tp;
  if (l.pp_tier == NetworkTier::kNvlink) width *= l.pp;
  if (l.dp_tier == NetworkTier::kNvlink) width *= l.dp * l.shard.cp;
  return width <= domain;
}

/// Order of preference.
struct Better {
  SearchGoal goal;
  bool operator()(const Found& a, const Found& b) const {
    const auto key = [&](const Found& f) {
      return goal == SearchGoal::kTime
                 ? std::tuple(f.value.time_s, f.value.memory_bytes, f.ordinal)
                 : std::tuple(f.value.memory_bytes, f.value.time_s, f.ordinal);
    };
    return key(a) < key(b);
  }
};

/// What one thread has found so far.
class Harvest {
 public:
  explicit Harvest(const SearchOptions& options) : options_(options), better_{options.goal} {}

  void take(const StepCandidate& c, const Evaluation& value, int64_t ordinal) {
    const Found found{.candidate = {}, .value = value, .ordinal = ordinal};
    if (best.size() < options_.top_k || better_(found, best.back())) {
      best.insert(std::upper_bound(best.begin(), best.end(), found, better_), found)->candidate = c;
      if (best.size() > options_.top_k) best.pop_back();
    }
    take_pareto(found, c);
  }
  void take_pareto(const Found& found, const StepCandidate& c) {
    // Sorted by time; memory falls along it.
    const auto faster_or_equal = [](const Found& a, const Found& b) {
      return a.value.time_s < b.value.time_s;
    };
    const auto after = std::upper_bound(pareto.begin(), pareto.end(), found, faster_or_equal);
    if (after != pareto.begin()) {
      const Found& before = *std::prev(after);
      const bool same = before.value.time_s == found.value.time_s &&
                        before.value.memory_bytes == found.value.memory_bytes;
      if (same ? before.ordinal < found.ordinal
               : before.value.memory_bytes <= found.value.memory_bytes)
        return;
    }
    auto begin = after;
    while (begin != pareto.begin() && std::prev(begin)->value.time_s == found.value.time_s) --begin;
    auto end = after;
    while (end != pareto.end() && end->value.memory_bytes >= found.value.memory_bytes) ++end;
    const auto place = pareto.erase(begin, end);
    pareto.insert(place, found)->candidate = c;
  }
  void merge(const Harvest& other) {
    for (const Found& f : other.best) best.push_back(f);
    std::sort(best.begin(), best.end(), better_);
    if (best.size() > options_.top_k)
      best.erase(best.begin() + static_cast<std::ptrdiff_t>(options_.top_k), best.end());
    for (const Found& f : other.pareto) take_pareto(f, f.candidate);
    evaluated += other.evaluated;
    fits += other.fits;
    too_big += other.too_big;
    unplaceable += other.unplaceable;
  }

  int64_t evaluated = 0, fits = 0, too_big = 0, unplaceable = 0;
  std::vector<Found> best, pareto;

 private:
  const SearchOptions& options_;
  Better better_;
};

/// Walks groups one after another; what neighbours share stays at hand.
class Walker {
 public:
  Walker(const StepProblem& problem, const SearchSpace& space, const SearchOptions& options)
      : problem_(problem), space_(space), options_(options), harvest(options) {}

  void walk(const SpaceGroup& group, int64_t group_index) {
    const std::tuple degrees(group.tp, group.cp, group.ep, group.dp);
    if (degrees != priced_) {
      priced_ = degrees;
      shards_.clear();
    }
    int64_t ordinal = group_index << kOrdinalBits;
    Evaluation value;
    const ShardCost* cost = nullptr;
    const StepProblem* problem = nullptr;
    walk_group(
        problem_,
        space_,
        group,
        [&](const StepCandidate& c) {
          problem = &variant(c);
          value.memory_bytes =
              peak_memory(*problem, options_.convention, c.layout).allocated_bytes();
        },
        [&](const StepCandidate& c, size_t key) {
          // ZeRO-3 alone lets a shard's cost depend on the data-parallel degree; see ShardLayout.
          auto& slot = shards_[{key, c.layout.zero}];
          if (!slot.known) slot = {true, price_shard(*problem, c.layout.shard)};
          cost = &slot.cost;
        },
        [&](const StepCandidate& c) {
          value.time_s = evaluate_step(*problem, *cost, c.layout).total_s();
          ++harvest.evaluated;
          const bool big = value.memory_bytes > options_.capacity_bytes;
          const bool placeable = on_nvlink_fits(c, problem_.device.nvlink_domain);
          harvest.too_big += big ? 1 : 0;
          harvest.unplaceable += !big && !placeable ? 1 : 0;
          if (!big && placeable) {
            ++harvest.fits;
            harvest.take(c, value, ordinal);
          }
          ++ordinal;
        });
  }

 private:
  struct Priced {
    bool known = false;
    ShardCost cost;
  };

  /// The problem with a candidate's recompute and sequence parallelism, made once.
  const StepProblem& variant(const StepCandidate& c) {
    const auto key = std::pair(c.recompute, c.sequence_parallel);
    const auto it = variants_.find(key);
    if (it != variants_.end()) return it->second;
    return variants_.emplace(key, problem_of(problem_, c)).first->second;
  }

  const StepProblem& problem_;
  const SearchSpace& space_;
  const SearchOptions& options_;
  std::map<std::pair<RecomputeKind, bool>, StepProblem> variants_;
  std::map<std::pair<size_t, int>, Priced> shards_;
  std::tuple<double, double, double, double> priced_{0, 0, 0, 0};

 public:
  Harvest harvest;
};

}  // namespace

SearchResult search(const StepProblem& problem,
                    const SearchSpace& space,
                    const SearchOptions& options) {
  const std::vector<SpaceGroup> groups = groups_of(problem, space);
  std::atomic<size_t> next{0};
  std::atomic<int64_t> evaluated{0};
  std::atomic<bool> stop{false};
  const auto work = [&](Walker& walker, bool reports) {
    while (!stop) {
      const size_t g = next.fetch_add(1);
      if (g >= groups.size()) return;
      const int64_t before = walker.harvest.evaluated;
      walker.walk(groups[g], static_cast<int64_t>(g));
      evaluated += walker.harvest.evaluated - before;
      if (reports && options.progress) options.progress(evaluated);
      if (reports && options.cancelled && options.cancelled()) stop = true;
    }
  };
  const size_t cores = options.threads > 0 ? static_cast<size_t>(options.threads)
                                           : std::max(1u, std::thread::hardware_concurrency());
  std::vector<Walker> walkers;
  walkers.reserve(cores);
  for (size_t t = 0; t < cores; ++t) walkers.emplace_back(problem, space, options);
  std::vector<std::thread> helpers;
  for (size_t t = 1; t < cores; ++t) helpers.emplace_back([&, t] { work(walkers[t], false); });
  work(walkers[0], true);
  for (std::thread& t : helpers) t.join();
  Harvest all(options);
  for (const Walker& w : walkers) all.merge(w.harvest);
  return {.evaluated = all.evaluated,
          .fits = all.fits,
          .too_big = all.too_big,
          .unplaceable = all.unplaceable,
          .best = std::move(all.best),
          .pareto = std::move(all.pareto)};
}

void for_each_candidate(const StepProblem& problem,
                        const SearchSpace& space,
                        const std::function<void(const StepCandidate&)>& visit) {
  for (const SpaceGroup& g : groups_of(problem, space)) {
    walk_group(
        problem, space, g, [](const StepCandidate&) {}, [](const StepCandidate&, size_t) {}, visit);
  }
}

}  // namespace meshwright
