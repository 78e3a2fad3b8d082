// SPDX-License-Identifier: Apache-2.0
// search() beside a loop that evaluates every candidate from nothing.
#include "sim/search/search.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <tuple>

#include "sim/step/plan_problem.h"
#include "sim/step/published_models.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

StepProblem problem_on(const char* model, const char* cluster, double seq, double batch) {
  const StepStack stack = *step_stack(testing::builtin_cluster(cluster));
  StepProblem p{.model = *published_model(model),
                .device = stack.device,
                .links = stack.links,
                .framework = stack.framework,
                .work = {}};
  p.work.seq = seq;
  p.work.global_batch = batch;
  return p;
}

/// All that fits by evaluate(), one candidate after the other.
struct BruteForce {
  int64_t evaluated = 0;
  int64_t too_big = 0;
  std::vector<Found> fits;
};

bool placeable(const StepCandidate& c, double domain) {
  const StepLayout& l = c.layout;
  const auto width = [](NetworkTier t, double n) { return t == NetworkTier::kNvlink ? n : 1.0; };
  return width(l.shard.tp_tier, l.shard.tp) * width(l.pp_tier, l.pp) *
             width(l.dp_tier, l.dp * l.shard.cp) <=
         domain;
}

BruteForce brute_force(const StepProblem& problem, const SearchSpace& space, double capacity) {
  BruteForce all;
  for_each_candidate(problem, space, [&](const StepCandidate& c) {
    const Evaluation value = evaluate(problem, StateConvention::kMegatron, c);
    const bool big = value.memory_bytes > capacity;
    all.too_big += big ? 1 : 0;
    if (!big && placeable(c, problem.device.nvlink_domain))
      all.fits.push_back({.candidate = c, .value = value, .ordinal = all.evaluated});
    ++all.evaluated;
  });
  return all;
}

void expect_same(const StepProblem& problem, const SearchSpace& space, double capacity) {
  BruteForce brute = brute_force(problem, space, capacity);
  SearchOptions options{.capacity_bytes = capacity, .top_k = 7, .threads = 1};
  const SearchResult r = search(problem, space, options);
  EXPECT_EQ(r.evaluated, brute.evaluated);
  EXPECT_EQ(r.too_big, brute.too_big);
  EXPECT_EQ(r.fits, static_cast<int64_t>(brute.fits.size()));
  EXPECT_EQ(r.fits + r.too_big + r.unplaceable, r.evaluated);

  std::stable_sort(brute.fits.begin(), brute.fits.end(), [](const Found& a, const Found& b) {
    return std::tuple(a.value.time_s, a.value.memory_bytes) <
           std::tuple(b.value.time_s, b.value.memory_bytes);
  });
  ASSERT_EQ(r.best.size(), std::min<size_t>(7, brute.fits.size()));
  for (size_t i = 0; i < r.best.size(); ++i) {
    EXPECT_EQ(r.best[i].value.time_s, brute.fits[i].value.time_s) << i;
    EXPECT_EQ(r.best[i].value.memory_bytes, brute.fits[i].value.memory_bytes) << i;
    EXPECT_EQ(describe(r.best[i].candidate), describe(brute.fits[i].candidate)) << i;
  }
  // Pareto: in order of time, each uses less memory than all before it.
  std::vector<Found> front;
  for (const Found& f : brute.fits) {
    if (front.empty() || f.value.memory_bytes < front.back().value.memory_bytes) front.push_back(f);
  }
  ASSERT_EQ(r.pareto.size(), front.size());
  for (size_t i = 0; i < front.size(); ++i) {
    EXPECT_EQ(r.pareto[i].value.time_s, front[i].value.time_s);
    EXPECT_EQ(r.pareto[i].value.memory_bytes, front[i].value.memory_bytes);
    EXPECT_EQ(describe(r.pareto[i].candidate), describe(front[i].candidate)) << i;
  }

  options.threads = 4;
  const SearchResult threaded = search(problem, space, options);
  EXPECT_EQ(threaded.evaluated, r.evaluated);
  ASSERT_EQ(threaded.best.size(), r.best.size());
  for (size_t i = 0; i < r.best.size(); ++i) EXPECT_EQ(threaded.best[i].ordinal, r.best[i].ordinal);
  ASSERT_EQ(threaded.pareto.size(), r.pareto.size());
  for (size_t i = 0; i < r.pareto.size(); ++i)
    EXPECT_EQ(threaded.pareto[i].ordinal, r.pareto[i].ordinal);
}

// GPT-3 6.7B on 16 devices: 32 layers, 32 heads, every choice of the large spaces.
TEST(Search, FindsWhatBruteForceFindsInTheSpaceWithOverlapAndOffload) {
  const StepProblem p = problem_on("gpt3-6.7b", "16xa100-80g", 2048, 16);
  expect_same(p, calculon_offload_space(p.model, 16, 16), 30e9);
}

TEST(Search, FindsWhatBruteForceFindsInThePlainSpace) {
  const StepProblem p = problem_on("gpt3-175b", "64xa100-80g", 2048, 64);
  expect_same(p, calculon_space(p.model, 64, 64), 80e9);
}

TEST(Search, FindsWhatBruteForceFindsWithExpertsAndContextParallelism) {
  const StepProblem p = problem_on("mixtral-8x7b", "32xh100", 4096, 64);
  SearchSpace s{.devices = 32, .global_batch = 64, .tp = {1, 2, 4}, .pp = {1, 2, 3, 4}};
  s.cp = {1, 2};
  s.ep = {1, 2, 4, 8};
  s.zero = {0, 1, 2, 3};
  s.equal_stages = false;
  s.every_interleave = true;
  s.schedules = {StepSchedule::kOneFOneB, StepSchedule::kZeroBubble1, StepSchedule::kZeroBubbleV};
  expect_same(p, s, 75e9);
}

// Calculon's program walks 88,484 on the first question; its loops give 6,582,816 on the second,
// with its second memory and overlaps. The count alone, without evaluating.
TEST(Search, SpacesAreThoseOfCalculon) {
  const auto count = [](const StepProblem& p, const SearchSpace& s) {
    int64_t n = 0;
    for_each_candidate(p, s, [&](const StepCandidate&) { ++n; });
    return n;
  };
  const StepProblem p = problem_on("gpt3-175b", "512xa100-80g", 2048, 512);
  EXPECT_EQ(count(p, calculon_space(p.model, 64, 64)), 88'484);
  EXPECT_EQ(count(p, calculon_offload_space(p.model, 512, 512)), 6'582'816);
}

TEST(Search, CancelKeepsWhatIsFound) {
  const StepProblem p = problem_on("gpt3-175b", "64xa100-80g", 2048, 64);
  int asked = 0;
  SearchOptions options{.capacity_bytes = 80e9, .threads = 1};
  options.cancelled = [&] { return ++asked == 20; };
  const SearchResult r = search(p, calculon_space(p.model, 64, 64), options);
  EXPECT_GT(r.evaluated, 0);
  EXPECT_LT(r.evaluated, 88'484);
  EXPECT_EQ(r.fits + r.too_big + r.unplaceable, r.evaluated);
}

TEST(Search, AFasterNetworkOrDeviceIsNeverSlower) {
  EXPECT_TRUE(rc::check("monotone in bandwidth", [] {
    StepProblem p = problem_on("gpt3-6.7b", "16xa100-80g", 2048, 16);
    p.links.nic_bandwidth = 1e9 * *rc::gen::inRange(1, 100);
    StepProblem faster = p;
    faster.links.nic_bandwidth *= 1 + 0.1 * *rc::gen::inRange(1, 20);
    faster.links.host_bandwidth *= 2;
    faster.device.nvlink_bandwidth *= 1.5;
    int64_t i = 0;
    const int64_t stride = *rc::gen::inRange(300, 500);
    for_each_candidate(p, calculon_offload_space(p.model, 16, 16), [&](const StepCandidate& c) {
      if (i++ % stride != 0) return;
      RC_ASSERT(evaluate(faster, StateConvention::kMegatron, c).time_s <=
                evaluate(p, StateConvention::kMegatron, c).time_s * (1 + 1e-12));
    });
  }));
}

}  // namespace
}  // namespace meshwright
