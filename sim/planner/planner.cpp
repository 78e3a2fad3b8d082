// SPDX-License-Identifier: Apache-2.0
#include "sim/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <span>
#include <thread>

#include "sim/core/text.h"
#include "sim/plan/executor_support.h"
#include "sim/planner/balance.h"
#include "sim/simulator/peak_memory.h"
#include "sim/simulator/quick_estimate.h"

namespace meshwright {
namespace {

/// Actions that the event simulation may spend on re-ranking: about a tenth of a second.
constexpr double kActionBudget = 0.5e6;
/// Plans of each size that are simulated in any case.
constexpr size_t kAlwaysSimulated = 2;
/// Up to so many layouts, the memory of each is replayed; beyond, from the fastest on, in
/// stretches.
constexpr size_t kReplayAll = 2000;
constexpr size_t kReplayStretch = 128;
constexpr size_t kEnough = 200;

/// One rule for all values it is broken with: digits become "N".
std::string rule_group(const Error& e) {
  std::string key = e.field + ": ";
  bool in_number = false;
  for (const char c : e.rule) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) key += c;
    if (digit && !in_number) key += 'N';
    in_number = digit;
  }
  return key;
}

class Rejections {
 public:
  /// `message` is asked for the first layout of a rule alone.
  template <class Message>
  void add(const std::string& rule, const Layout& layout, Message&& message) {
    auto [it, inserted] = index_.try_emplace(rule, list_.size());
    if (inserted) list_.push_back({rule, 0, summary(layout) + ": " + message()});
    ++list_[it->second].count;
  }
  std::vector<Rejection> sorted() && {
    std::stable_sort(list_.begin(), list_.end(), [](const Rejection& a, const Rejection& b) {
      return a.count > b.count;
    });
    return std::move(list_);
  }

 private:
  std::map<std::string, size_t> index_;
  std::vector<Rejection> list_;
};

/// Order of preference between equal times: the simpler layout.
auto tie_break(const Layout& l) {
  return std::tuple(l.pp,
                    l.tp,
                    l.sp ? 0 : 1,
                    static_cast<int>(l.recompute),
                    l.zero_stage,
                    static_cast<int>(l.schedule),
                    l.virtual_stages,
                    -l.micro_batch,
                    l.dp_shard);
}

double action_count(const Plan& plan) {
  // Per virtual stage three passes at most, and a send and a receive for two of them.
  const double per_micro_batch = plan.layout().recompute == Recompute::kFull
                                     ? 2.0 * static_cast<double>(plan.model().num_layers)
                                     : 6.0 * plan.layout().num_parts();
  return static_cast<double>(plan.num_micro_batches()) * per_micro_batch +
         4.0 * static_cast<double>(plan.model().num_layers);
}

/// What became of one layout. Nothing but the first example of a rule needs its message, so that is
/// left to the one who reports it.
struct Judged {
  std::optional<Plan> plan;
  std::optional<Error> broken;
  std::optional<Seconds> time;  ///< Nothing where a lower bound of the memory is too big already.
};

Judged judge(const std::shared_ptr<const Problem>& problem,
             const Layout& layout,
             const CostModel& cost,
             StageCostCache& cache) {
  Judged j;
  ValidationOutcome outcome = validate(problem, layout);
  if (!outcome.plan) {
    j.broken = std::move(outcome.violations.front());
    return j;
  }
  j.plan = std::move(outcome.plan);
  if (problem->cluster.is_local()) j.broken = executor_refuses(*j.plan);
  const Bytes capacity = problem->cluster.capacity();
  if (j.broken || memory_upper_bound(*j.plan, memory_floor(*j.plan, cost, cache)) > capacity)
    return j;
  j.time = estimate_time(*j.plan, cost, StageCosts(*j.plan, cost, cache));
  return j;
}

/// Calls `work(index, cache)` for all of [0, count) on several threads, each with a cache of its
/// own. `between(done)` is asked by this thread now and then, and ends the loop with false. Returns
/// how many indices, from 0, were certainly done.
template <class Work, class Between>
size_t for_all(size_t count, int threads, const Work& work, const Between& between) {
  constexpr size_t kBatch = 32;
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  const auto run = [&](bool reports) {
    StageCostCache cache;
    while (!stop) {
      const size_t begin = next.fetch_add(kBatch);
      if (begin >= count) return;
      if (reports && !between(begin)) stop = true;
      for (size_t i = begin; i < std::min(begin + kBatch, count); ++i) work(i, cache);
    }
  };
  const size_t batches = (count + kBatch - 1) / kBatch;
  const size_t cores = threads > 0 ? static_cast<size_t>(threads)
                                   : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  for (size_t t = 1; t < std::min(cores, batches); ++t) helpers.emplace_back(run, false);
  run(true);
  for (std::thread& t : helpers) t.join();
  return stop ? std::min(next.load(), count) : count;
}

/// Judges every layout, in their order. Only this thread calls `options`.
std::vector<Judged> judge_all(const std::shared_ptr<const Problem>& problem,
                              const std::vector<Layout>& layouts,
                              const CostModel& cost,
                              const PlannerOptions& options) {
  std::vector<Judged> judged(layouts.size());
  const size_t done = for_all(
      layouts.size(),
      options.threads,
      [&](size_t i, StageCostCache& cache) { judged[i] = judge(problem, layouts[i], cost, cache); },
      [&](size_t i) {
        if (options.progress)
          options.progress(static_cast<int64_t>(i), static_cast<int64_t>(layouts.size()));
        return !(options.cancelled && options.cancelled());
      });
  judged.resize(done);
  return judged;
}

/// Peaks of a stretch of candidates.
void find_peaks(std::span<Candidate> candidates, const CostModel& cost, int threads) {
  for_all(
      candidates.size(),
      threads,
      [&](size_t i, StageCostCache& cache) {
        Candidate& c = candidates[i];
        c.peak = estimate_peak_memory(c.plan, StageCosts(c.plan, cost, cache));
      },
      [](size_t) { return true; });
}

std::string too_big(const Plan& plan, Bytes peak) {
  const Bytes upper = memory_upper_bound(plan, peak);
  const Bytes capacity = plan.cluster().capacity();
  if (upper == peak) return fmt::format("needs {}, a device has {}", show(peak), show(capacity));
  return fmt::format(
      "needs {}, up to {} with allocator, libraries and communicators; a device has {}",
      show(peak),
      show(upper),
      show(capacity));
}

/// The plan, or the same one with its layers split by what blocks cost where that is faster.
RankedPlan with_better_split(const Plan& plan, const CostModel& cost, StageCostCache& cache) {
  RankedPlan even{plan, simulate(plan, cost, cache)};
  Layout l = plan.layout();
  if (l.pp == 1) return even;
  l.stages = balance_stages(block_seconds(plan, StageCosts(plan, cost, cache)), l.num_parts());
  if (l.stages == plan.layout().stages) return even;
  ValidationOutcome outcome = validate(plan.shared_problem(), l);
  if (!outcome.plan) return even;
  RankedPlan balanced{*std::move(outcome.plan), {}};
  balanced.simulation = simulate(balanced.plan, cost, cache);
  const bool better = balanced.simulation.fits &&
                      balanced.simulation.report.step_time < even.simulation.report.step_time;
  return better ? balanced : even;
}

}  // namespace

PlannerResult plan_layouts(const std::shared_ptr<const Problem>& problem,
                           const CostModel& cost,
                           const PlannerOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  PlannerResult result;
  Rejections rejections;
  StageCostCache cache;
  const std::vector<Layout> layouts = enumerate_layouts(*problem, options.pins);
  const auto total = static_cast<int64_t>(layouts.size());
  const Bytes capacity = problem->cluster.capacity();
  std::vector<Judged> judged = judge_all(problem, layouts, cost, options);
  const char* const kTooBig =
      "memory: the upper bound of the peak must not exceed the capacity of a device";
  std::vector<Candidate> timed;
  for (size_t i = 0; i < judged.size(); ++i) {
    Judged& j = judged[i];
    ++result.examined;
    if (j.broken) {
      rejections.add(rule_group(*j.broken), layouts[i], [&] { return to_string(*j.broken); });
    } else if (!j.time) {
      rejections.add(kTooBig, layouts[i], [&] {
        return too_big(*j.plan, estimate_peak_memory(*j.plan, StageCosts(*j.plan, cost, cache)));
      });
    } else {
      timed.push_back({*std::move(j.plan), *j.time, Bytes{}});
    }
  }
  if (options.progress) options.progress(total, total);
  std::stable_sort(timed.begin(), timed.end(), [](const Candidate& a, const Candidate& b) {
    if (a.time != b.time) return a.time < b.time;
    return tie_break(a.plan.layout()) < tie_break(b.plan.layout());
  });

  // Memory is replayed from the fastest on. A large space ends once enough of them fit: the rest
  // is slower, whatever it needs.
  const size_t always = kAlwaysSimulated * static_cast<size_t>(options.top_k);
  const bool all = options.replay_all || timed.size() <= kReplayAll;
  const size_t enough = std::max(always, kEnough);
  std::vector<Candidate> feasible;
  double actions = 0;
  size_t seen = 0;
  while (seen < timed.size() && (all || feasible.size() < enough || actions <= kActionBudget)) {
    const size_t end = all ? timed.size() : std::min(timed.size(), seen + kReplayStretch);
    find_peaks({&timed[seen], end - seen}, cost, options.threads);
    for (; seen < end; ++seen) {
      Candidate& c = timed[seen];
      if (memory_upper_bound(c.plan, c.peak) > capacity) {
        rejections.add(kTooBig, c.plan.layout(), [&] { return too_big(c.plan, c.peak); });
      } else {
        actions += action_count(c.plan);
        feasible.push_back(std::move(c));
      }
    }
  }
  for (; seen < timed.size(); ++seen) {
    const Candidate& c = timed[seen];
    rejections.add("time: slower than enough layouts that fit; its memory was not replayed",
                   c.plan.layout(),
                   [&] { return fmt::format("takes {}", show(c.time)); });
  }
  result.feasible = static_cast<int64_t>(feasible.size());
  result.rejected = std::move(rejections).sorted();

  double spent = 0;
  for (const Candidate& c : feasible) {
    if (result.plans.size() >= always && spent > kActionBudget) break;
    result.plans.push_back(options.pins.balance
                               ? with_better_split(c.plan, cost, cache)
                               : RankedPlan{c.plan, simulate(c.plan, cost, cache)});
    spent += action_count(c.plan);
  }
  std::stable_sort(
      result.plans.begin(), result.plans.end(), [](const RankedPlan& a, const RankedPlan& b) {
        const Seconds ta = a.simulation.report.step_time;
        const Seconds tb = b.simulation.report.step_time;
        if (ta != tb) return ta < tb;
        return tie_break(a.plan.layout()) < tie_break(b.plan.layout());
      });
  if (result.plans.size() > static_cast<size_t>(options.top_k)) {
    result.plans.erase(result.plans.begin() + options.top_k, result.plans.end());
  }
  if (options.keep_feasible) result.all_feasible = std::move(feasible);
  result.elapsed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::optional<TermDifference> deciding_term(const StepReport& winner, const StepReport& loser) {
  std::optional<TermDifference> worst;
  for (int t = 0; t < kNumTerms; ++t) {
    const Seconds d = loser.terms[static_cast<size_t>(t)] - winner.terms[static_cast<size_t>(t)];
    if (d > Seconds{} && (!worst || d > worst->difference)) worst = {static_cast<Term>(t), d};
  }
  return worst;
}

}  // namespace meshwright
