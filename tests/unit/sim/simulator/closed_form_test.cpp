// SPDX-License-Identifier: Apache-2.0
// The step model's closed form, which is held against published steps, beside the event simulation,
// which plays every action.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/simulator/simulate.h"
#include "sim/step/step_time.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::make_problem;

struct Family {
  const char* name;
  const char* model;
  const char* cluster;
  std::vector<Layout> layouts;
  double mean;   ///< Bar on the mean |difference|,
  double worst;  ///< and on the largest.
};

double closed_form(const Plan& plan, const CostModel& cost) {
  const StepProblem problem = step_problem(*cost.step_stack(), plan);
  const StepLayout layout = step_layout(plan);
  return evaluate_step(problem, price_shard(problem, layout.shard), layout).total_s();
}

std::vector<Layout> pipelines(const std::vector<ScheduleKind>& kinds) {
  std::vector<Layout> out;
  for (const ScheduleKind kind : kinds) {
    for (const int tp : {1, 2, 4}) {
      for (const int pp : {2, 4}) {
        for (const Recompute r : {Recompute::kNone, Recompute::kFull}) {
          Layout l{.dp_shard = 32 / tp / pp, .tp = tp, .sp = tp > 1, .pp = pp, .zero_stage = 1};
          l.recompute = r;
          l.schedule = kind;
          if (kind == ScheduleKind::kInterleaved || kind == ScheduleKind::kZbV)
            l.virtual_stages = 2;
          out.push_back(l);
        }
      }
    }
  }
  return out;
}

std::vector<Layout> flat(int min_zero, int max_zero) {
  std::vector<Layout> out;
  for (int zero = min_zero; zero <= max_zero; ++zero) {
    for (const int tp : {1, 2, 4}) {
      for (const int64_t mb : {1, 2}) {
        Layout l{.tp = tp, .sp = tp > 1, .micro_batch = mb, .zero_stage = zero};
        (zero > 0 ? l.dp_shard : l.dp_replicate) = 32 / tp;
        out.push_back(l);
      }
    }
  }
  return out;
}

// Two independent prices of the same constants: the closed form takes exposed shares, the events
// find them. Zero-bubble schedules: the closed form keeps the share of the bubble that was measured
// with their own optimizer post-validation; the events have our global gradient norm.
TEST(ClosedForm, IsNearTheEventSimulationOnEveryAxis) {
  using enum ScheduleKind;
  const std::vector<Family> families = {
      {"1F1B and interleaved",
       "llama-3-8b",
       "32xh100",
       pipelines({k1f1b, kInterleaved}),
       0.02,
       0.05},
      {"split backward", "llama-3-8b", "32xh100", pipelines({kZbH1, kZbH2, kZbV}), 0.07, 0.15},
      {"ZeRO without a pipeline", "llama-3-8b", "32xh100", flat(0, 2), 0.03, 0.10},
      // Where gathers bound the step, the events also gather the two tables, an eighth of this
      // model; the closed form counts layers.
      {"fully sharded", "llama-3-8b", "32xh100", flat(3, 3), 0.12, 0.25},
      {"context parallelism",
       "llama-3-8b",
       "32xh100",
       {{.dp_shard = 8, .tp = 2, .sp = true, .cp = 2, .zero_stage = 1},
        {.dp_shard = 2, .tp = 2, .sp = true, .cp = 4, .pp = 2, .zero_stage = 1}},
       0.02,
       0.05},
      {"experts",
       "mixtral-8x7b",
       "32xh100",
       {{.dp_shard = 32, .ep = 8, .zero_stage = 1},
        {.dp_shard = 16, .pp = 2, .ep = 8, .zero_stage = 1},
        {.dp_shard = 4, .tp = 4, .sp = true, .pp = 2, .ep = 2, .zero_stage = 1},
        {.dp_shard = 4,
         .tp = 4,
         .sp = true,
         .pp = 2,
         .ep = 8,
         .expert_tp = false,
         .zero_stage = 1}},
       0.03,
       0.06},
  };
  for (const Family& f : families) {
    const auto problem = make_problem(
        builtin_model(f.model), builtin_cluster(f.cluster), 4096, 512, Precision::kBf16);
    const CostModel cost(problem->cluster, nullptr);
    double sum = 0;
    for (const Layout& l : f.layouts) {
      const Plan plan = testing::make_plan(problem, l);
      const double simulated = simulate(plan, cost).report.step_time.v;
      const double error = std::abs(closed_form(plan, cost) / simulated - 1);
      EXPECT_LE(error, f.worst) << f.name << ": " << summary(plan.layout());
      sum += error;
    }
    EXPECT_LE(sum / static_cast<double>(f.layouts.size()), f.mean) << f.name;
  }
}

}  // namespace
}  // namespace meshwright
