// SPDX-License-Identifier: Apache-2.0
#include "sim/planner/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/advice/flop_count.h"
#include "sim/plan/executor_support.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::make_problem;
using testing::small_model;

PlannerResult search(const std::shared_ptr<const Problem>& problem,
                     const LayoutPins& pins = {},
                     int top = 5) {
  return plan_layouts(
      problem, CostModel(problem->cluster, nullptr), {.top_k = top, .pins = pins, .progress = {}});
}

void expect_accounted(const PlannerResult& r) {
  int64_t rejected = 0;
  for (const Rejection& x : r.rejected) {
    EXPECT_GT(x.count, 0);
    EXPECT_FALSE(x.example.empty());
    rejected += x.count;
  }
  EXPECT_EQ(r.examined, r.feasible + rejected);
}

/// Every legal layout by plain loops over all values, without the planner's enumeration.
std::vector<Layout> brute_force(const std::shared_ptr<const Problem>& problem) {
  const int world = problem->cluster.num_devices;
  std::vector<Layout> out;
  for (int tp = 1; tp <= world; ++tp)
    for (int pp = 1; pp <= world; ++pp)
      for (int replicate = 1; replicate <= world; ++replicate)
        for (int shard = 1; shard <= world; ++shard)
          for (int zero = 0; zero <= 3; ++zero)
            for (const bool sp : {false, true})
              for (const Recompute recompute : {Recompute::kNone, Recompute::kFull})
                for (int kind = 0; kind < kNumScheduleKinds; ++kind)
                  for (int v = 1; v <= problem->model.num_layers; ++v)
                    for (int64_t mb = 1; mb <= problem->workload.global_batch; ++mb) {
                      const auto schedule = static_cast<ScheduleKind>(kind);
                      if (pp == 1 && schedule == ScheduleKind::kGpipe)
                        continue;  // the same without a pipeline
                      if (v > 2 && problem->model.num_layers % (pp * v) != 0)
                        continue;  // uneven parts, no better than with fewer of them
                      const Layout l{.dp_replicate = replicate,
                                     .dp_shard = shard,
                                     .tp = tp,
                                     .sp = sp,
                                     .pp = pp,
                                     .virtual_stages = v,
                                     .micro_batch = mb,
                                     .zero_stage = zero,
                                     .recompute = recompute,
                                     .schedule = schedule,
                                     .precision = problem->workload.precision};
                      if (tp * pp * replicate * shard == world && validate(problem, l).plan)
                        out.push_back(l);
                    }
  return out;
}

TEST(Planner, FindsWhatBruteForceFinds) {
  for (const char* cluster : {"4xh100", "8xh100"}) {
    const auto problem =
        make_problem(small_model(), builtin_cluster(cluster), 16, 8, Precision::kBf16);
    const std::vector<Layout> all = brute_force(problem);
    const PlannerResult r = search(problem);
    EXPECT_EQ(r.feasible, static_cast<int64_t>(all.size()));
    expect_accounted(r);
    double best = 1e300;
    const CostModel cost(problem->cluster, nullptr);
    for (const Layout& l : all)
      best = std::min(best, simulate(*validate(problem, l).plan, cost).report.step_time.v);
    ASSERT_FALSE(r.plans.empty());
    EXPECT_DOUBLE_EQ(r.plans.front().simulation.report.step_time.v, best)
        << summary(r.plans.front().plan.layout());
  }
}

TEST(Planner, EnumeratesEveryLegalLayoutOnce) {
  const auto problem =
      make_problem(small_model(), builtin_cluster("8xh100"), 16, 8, Precision::kBf16);
  std::multiset<std::string> enumerated;
  for (const Layout& l : enumerate_layouts(*problem, {})) {
    if (const auto outcome = validate(problem, l); outcome.plan) {
      enumerated.insert(summary(outcome.plan->layout()) + (l.dp_shard > 1 ? " sharded" : ""));
    }
  }
  std::multiset<std::string> legal;
  for (const Layout& l : brute_force(problem)) {
    legal.insert(summary(validate(problem, l).plan->layout()) + (l.dp_shard > 1 ? " sharded" : ""));
  }
  EXPECT_EQ(enumerated, legal);
}

TEST(Planner, PlansAreSortedFitAndDiffer) {
  const auto problem = make_problem(
      builtin_model("llama-3-8b"), builtin_cluster("16xh100"), 4096, 128, Precision::kBf16);
  const PlannerResult r = search(problem, {}, 10);
  ASSERT_EQ(r.plans.size(), 10u);
  expect_accounted(r);
  std::set<std::string> layouts;
  for (size_t i = 0; i < r.plans.size(); ++i) {
    const Simulation& s = r.plans[i].simulation;
    if (i > 0) {
      EXPECT_GE(s.report.step_time, r.plans[i - 1].simulation.report.step_time);
    }
    EXPECT_TRUE(s.fits);
    EXPECT_TRUE(layouts.insert(summary(r.plans[i].plan.layout())).second);
  }
}

TEST(Planner, PinsAreRespected) {
  const auto problem = make_problem(
      builtin_model("llama-3-8b"), builtin_cluster("16xh100"), 4096, 128, Precision::kBf16);
  const auto pins =
      parse_layout_pins("tp=2,dp=4,micro_batch=2,recompute=full,sp=on,schedule=gpipe", "20,12")
          .value();
  const PlannerResult r = search(problem, pins, 100);
  ASSERT_FALSE(r.plans.empty());
  for (const RankedPlan& p : r.plans) {
    const Layout& l = p.plan.layout();
    EXPECT_EQ(l.tp, 2);
    EXPECT_EQ(l.dp(), 4);
    EXPECT_EQ(l.pp, 2);
    EXPECT_EQ(l.micro_batch, 2);
    EXPECT_EQ(l.recompute, Recompute::kFull);
    EXPECT_TRUE(l.sp);
    EXPECT_EQ(l.schedule, ScheduleKind::kGpipe);
    EXPECT_EQ(l.stages, (std::vector{20, 12}));
  }
  // dp = 4 in every split: 4x1, and 2x2 and 1x4 under ZeRO 1 to 3.
  EXPECT_EQ(r.examined, 1 + 2 * 3);
}

TEST(Planner, ADataParallelDegreeThatFitsNowhereHasNoCandidates) {
  const auto problem =
      make_problem(small_model(), builtin_cluster("8xh100"), 16, 8, Precision::kBf16);
  EXPECT_TRUE(enumerate_layouts(*problem, parse_layout_pins("dp=3", "").value()).empty());
  // With the other axes pinned too, the one candidate names the product.
  const auto layouts = enumerate_layouts(*problem, parse_layout_pins("dp=2,tp=2,pp=1", "").value());
  ASSERT_FALSE(layouts.empty());
  for (const Layout& l : layouts) {
    EXPECT_EQ(l.dp_replicate, 2);
    EXPECT_THAT(to_string(validate(problem, l).violations.front()),
                ::testing::HasSubstr("= 4 must be the 8 devices"));
  }
}

TEST(Planner, IllegalPinIsRejectedByItsRule) {
  const auto problem = make_problem(
      builtin_model("llama-3-70b"), builtin_cluster("64xa100-80g"), 4096, 1024, Precision::kBf16);
  const PlannerResult r = search(problem, parse_layout_pins("tp=3", "").value());
  EXPECT_TRUE(r.plans.empty());
  EXPECT_EQ(r.feasible, 0);
  expect_accounted(r);
}

TEST(Planner, LocalRanksAreOfferedOnlyWhatTheWorkerRuns) {
  const auto problem =
      make_problem(small_model(), builtin_cluster("4xlocal"), 16, 8, Precision::kFp32);
  const PlannerResult r = search(problem, {}, 1000);
  ASSERT_FALSE(r.plans.empty());
  for (const RankedPlan& p : r.plans)
    EXPECT_FALSE(executor_refuses(p.plan).has_value()) << summary(p.plan.layout());
}

TEST(Planner, PipelinesAreOfferedEverySchedule) {
  const auto problem = make_problem(
      builtin_model("llama-3-8b"), builtin_cluster("16xh100"), 4096, 128, Precision::kBf16);
  std::set<std::pair<ScheduleKind, int>> seen;
  for (const Layout& l : enumerate_layouts(*problem, {}))
    if (l.pp > 1) seen.insert({l.schedule, l.virtual_stages});
  for (int k = 0; k < kNumScheduleKinds; ++k) {
    const auto kind = static_cast<ScheduleKind>(k);
    const bool two = kind == ScheduleKind::kInterleaved || kind == ScheduleKind::kZbV;
    EXPECT_TRUE(seen.contains({kind, two ? 2 : 1})) << to_string(kind);
  }
  EXPECT_TRUE(seen.contains({ScheduleKind::kInterleaved, 4}));  // 32 layers
}

TEST(Planner, TooLittleMemoryIsCounted) {
  const auto problem = make_problem(
      builtin_model("llama-3-70b"), builtin_cluster("8xa100-80g"), 4096, 1024, Precision::kBf16);
  const PlannerResult r = search(problem);
  EXPECT_TRUE(r.plans.empty());
  expect_accounted(r);
  bool memory = false;
  for (const Rejection& x : r.rejected) memory = memory || x.rule.starts_with("memory:");
  EXPECT_TRUE(memory);
}

// Published steps of 70B-class models on A100 reach an MFU of 0.4 to 0.55 with tensor parallelism
// inside a node and 1F1B.
TEST(Planner, Llama70bOn64A100) {
  const auto problem = make_problem(
      builtin_model("llama-3-70b"), builtin_cluster("64xa100-80g"), 4096, 1024, Precision::kBf16);
  const PlannerResult r = search(problem, {.schedule = ScheduleKind::k1f1b});
  ASSERT_EQ(r.plans.size(), 5u);
  expect_accounted(r);
  for (const RankedPlan& p : r.plans) {
    const Layout& l = p.plan.layout();
    const StepReport& report = p.simulation.report;
    EXPECT_LE(l.tp, 8);
    EXPECT_LE(report.peak_memory, problem->cluster.capacity());
    const double mfu = utilization(p.plan,
                                   CostModel(problem->cluster, nullptr),
                                   report.step_time,
                                   FlopDefinition::kCausal)
                           .mfu;
    EXPECT_GE(mfu, 0.35);
    EXPECT_LE(mfu, 0.60);
    // Model states of the stage at the peak: 18P, 6P + 12P/d, 2P + 16P/d or 18P/d, with P its
    // parameters.
    const auto parameters = static_cast<double>(
        stage_placements(p.plan)[static_cast<size_t>(p.simulation.peak_stage)].padded_parameters());
    const double states = (report[MemoryTerm::kWeights] + report[MemoryTerm::kGradients] +
                           report[MemoryTerm::kOptimizer])
                              .v;
    const double whole[] = {18, 6, 2, 0};
    const double kept = whole[l.zero_stage];
    EXPECT_DOUBLE_EQ(states, kept * parameters + (18 - kept) * parameters / l.dp_shard);
    EXPECT_GT(parameters, 70.5e9 / l.pp / l.tp * 0.9);
  }
}

TEST(Planner, IsDeterministicButForTheClock) {
  const auto problem =
      make_problem(small_model(), builtin_cluster("8xh100"), 16, 8, Precision::kBf16);
  const PlannerResult a = search(problem, {}, 50);
  const PlannerResult b = search(problem, {}, 50);
  ASSERT_EQ(a.plans.size(), b.plans.size());
  for (size_t i = 0; i < a.plans.size(); ++i)
    EXPECT_EQ(a.plans[i].plan.layout(), b.plans[i].plan.layout());
}

TEST(Planner, ProgressReachesTheTotal) {
  const auto problem =
      make_problem(small_model(), builtin_cluster("4xh100"), 16, 8, Precision::kBf16);
  int64_t last = -1;
  int64_t total = 0;
  const auto r = plan_layouts(problem,
                              CostModel(problem->cluster, nullptr),
                              {.top_k = 1, .pins = {}, .progress = [&](int64_t done, int64_t all) {
                                 EXPECT_GE(done, last);
                                 last = done;
                                 total = all;
                               }});
  EXPECT_EQ(last, total);
  EXPECT_EQ(total, r.examined);
}

TEST(Planner, DecidingTermIsTheLargestLoss) {
  StepReport winner, loser;
  loser[Term::kBubble] = Seconds{2};
  loser[Term::kExposedDp] = Seconds{1};
  winner[Term::kCompute] = Seconds{5};
  const auto d = deciding_term(winner, loser);
  ASSERT_TRUE(d.has_value());
  EXPECT_EQ(d->term, Term::kBubble);
  EXPECT_EQ(d->difference.v, 2);
  EXPECT_FALSE(deciding_term(winner, winner).has_value());
}

TEST(Planner, TheResultDoesNotDependOnThreads) {
  const auto problem = testing::make_problem(testing::builtin_model("llama-3-8b"),
                                             testing::builtin_cluster("16xh100"),
                                             4096,
                                             64,
                                             Precision::kBf16);
  const CostModel cost(problem->cluster, nullptr);
  const auto run = [&](int threads) {
    return plan_layouts(problem, cost, {.top_k = 8, .threads = threads});
  };
  const PlannerResult one = run(1);
  for (const int threads : {2, 5}) {
    const PlannerResult many = run(threads);
    EXPECT_EQ(many.examined, one.examined);
    EXPECT_EQ(many.feasible, one.feasible);
    ASSERT_EQ(many.plans.size(), one.plans.size());
    for (size_t i = 0; i < one.plans.size(); ++i) {
      EXPECT_EQ(many.plans[i].plan.layout(), one.plans[i].plan.layout());
      EXPECT_EQ(many.plans[i].simulation.report.step_time,
                one.plans[i].simulation.report.step_time);
    }
    ASSERT_EQ(many.rejected.size(), one.rejected.size());
    for (size_t i = 0; i < one.rejected.size(); ++i) {
      EXPECT_EQ(many.rejected[i].example, one.rejected[i].example);
      EXPECT_EQ(many.rejected[i].count, one.rejected[i].count);
    }
  }
}

TEST(Planner, ACancelledSearchReportsWhatItHasSeen) {
  const auto problem = testing::make_problem(testing::builtin_model("llama-3-8b"),
                                             testing::builtin_cluster("16xh100"),
                                             4096,
                                             64,
                                             Precision::kBf16);
  const CostModel cost(problem->cluster, nullptr);
  int asked = 0;
  const PlannerResult part = plan_layouts(
      problem, cost, {.top_k = 2, .cancelled = [&] { return ++asked == 3; }, .threads = 1});
  const PlannerResult all = plan_layouts(problem, cost, {.top_k = 2});
  EXPECT_GT(part.examined, 0);
  EXPECT_LT(part.examined, all.examined);
  int64_t rejected = 0;
  for (const Rejection& r : part.rejected) rejected += r.count;
  EXPECT_EQ(part.examined, part.feasible + rejected);
}

}  // namespace
}  // namespace meshwright
