// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "sim/parity/parity.h"
#include "sim/plan/executor_support.h"
#include "sim/spec/logical_tensors.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

TEST(ParitySuite, CoversEveryAxisOn1To8Ranks) {
  const std::vector<Plan> suite = slice_suite();
  EXPECT_EQ(suite.size(), 50u);
  std::map<int, int> by_world;
  std::set<std::string> models, layouts;
  std::set<std::string> features;
  for (const Plan& p : suite) {
    const Layout& l = p.layout();
    ++by_world[p.world_size()];
    models.insert(p.model().name);
    EXPECT_TRUE(layouts.insert(p.model().name + summary(l)).second) << summary(l);
    EXPECT_TRUE(p.cluster().is_local());
    EXPECT_EQ(l.precision, Precision::kFp32);
    EXPECT_LE(parameter_count(p.model()), 1'000'000);
    const auto note = [&](bool on, const char* what) {
      if (on) features.insert(what);
    };
    note(l.dp_replicate > 1 && l.dp_shard > 1, "hybrid dp");
    note(l.zero_stage == 1, "zero 1");
    note(l.zero_stage == 2, "zero 2");
    note(l.zero_stage == 3, "zero 3");
    note(l.zero_stage == 3 && l.dp_replicate > 1, "hybrid zero 3");
    note(l.zero_stage == 3 && !l.reshard, "zero 3 without resharding");
    note(l.zero_stage == 3 && l.persistence_threshold > 0, "persistent tensors");
    note(l.tp > p.model().num_kv_heads, "shared key/value heads");
    note(l.sp, "sp");
    note(l.pp > 1 && l.schedule == ScheduleKind::kGpipe, "gpipe");
    note(l.pp > 1 && l.schedule == ScheduleKind::k1f1b, "1f1b");
    note(l.virtual_stages > 1, "virtual stages");
    note(splits_backward(l.schedule), "split backward");
    EXPECT_FALSE(executor_refuses(p).has_value());
    note(l.pp > 1 && l.stages != balanced_stages(p.model().num_layers, l.num_parts()),
         "uneven stages");
    note(l.recompute == Recompute::kFull, "recompute");
    note(p.model().tied_embeddings && l.pp > 1, "tie over a pipeline");
    note(p.model().qkv_bias && l.tp > 1, "bias");
    note(p.num_micro_batches() > 1, "accumulation");
    note(p.model().d_ff % l.tp != 0, "uneven feed-forward shards");
    note(p.model().vocab_size % l.tp != 0, "uneven vocabulary shards");
  }
  for (const int world : {1, 2, 4, 8}) EXPECT_GE(by_world[world], 3) << world;
  EXPECT_EQ(models, (std::set<std::string>{"dense", "grouped", "tied", "biased", "normed", "gpt"}));
  EXPECT_EQ(features.size(), 20u);
}

TEST(ParitySuite, RandomLayoutsDependOnTheSeedAlone) {
  const std::vector<Plan> a = random_suite(40, 7);
  const std::vector<Plan> b = random_suite(40, 7);
  const std::vector<Plan> c = random_suite(40, 8);
  ASSERT_EQ(a.size(), 40u);
  std::set<std::string> different;
  bool same_as_c = true;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].layout(), b[i].layout());
    EXPECT_LE(a[i].world_size(), 8);
    same_as_c = same_as_c && a[i].layout() == c[i].layout();
    different.insert(a[i].model().name + summary(a[i].layout()));
  }
  EXPECT_FALSE(same_as_c);
  EXPECT_GT(different.size(), 20u);
}

TEST(ParityCase, SmallLocalPlanIsCheckedItself) {
  const Plan plan = slice_suite().back();
  const PlanCase c = parity_case_of(plan).value();
  EXPECT_FALSE(c.reduced);
  EXPECT_EQ(c.plan.layout(), plan.layout());
}

TEST(ParityCase, BigPlanKeepsItsAxesAtReducedWidth) {
  const auto problem = testing::make_problem(testing::builtin_model("llama-3-70b"),
                                             testing::builtin_cluster("64xa100-80g"),
                                             4096,
                                             1024,
                                             Precision::kBf16);
  const Plan plan = testing::make_plan(problem,
                                       {.dp_shard = 4,
                                        .tp = 8,
                                        .sp = true,
                                        .pp = 2,
                                        .zero_stage = 1,
                                        .recompute = Recompute::kFull,
                                        .schedule = ScheduleKind::kGpipe});
  const PlanCase c = parity_case_of(plan).value();
  EXPECT_TRUE(c.reduced);
  const Layout& l = c.plan.layout();
  EXPECT_EQ(l.dp_shard, 2);
  EXPECT_EQ(l.tp, 2);
  EXPECT_EQ(l.pp, 2);
  EXPECT_TRUE(l.sp);
  EXPECT_EQ(l.zero_stage, 1);
  EXPECT_EQ(l.recompute, Recompute::kFull);
  EXPECT_EQ(l.schedule, ScheduleKind::kGpipe);
  EXPECT_LE(c.plan.world_size(), 8);
  EXPECT_LT(c.plan.model().num_kv_heads, c.plan.model().num_heads);
}

TEST(ParityCase, EveryLegalKindOfPlanCanBeReduced) {
  for (Layout l : testing::all_layouts()) {
    const auto problem =
        testing::make_problem(testing::builtin_model("qwen2.5-0.5b"),
                              testing::builtin_cluster(std::to_string(l.world_size()) + "xh100"),
                              64,
                              64,
                              Precision::kBf16);
    for (int& s : l.stages) s *= 6;
    if (14 % l.tp != 0) continue;
    const auto c = parity_case_of(testing::make_plan(problem, l));
    ASSERT_TRUE(c.has_value()) << to_string(c.error());
    EXPECT_TRUE(c->plan.model().qkv_bias);
    EXPECT_TRUE(c->plan.model().tied_embeddings);
  }
}

TEST(ParityCase, ReferenceIsTheSameModelOnOneRank) {
  const Plan plan = slice_suite().back();
  const Plan reference = reference_of(plan);
  EXPECT_EQ(reference.world_size(), 1);
  EXPECT_EQ(reference.model(), plan.model());
  EXPECT_EQ(reference.workload(), plan.workload());
}

TEST(ParityResult, OkNeedsNumbersWithinTheTolerance) {
  const ParityResult good{
      .loss_rel_err = 1e-5, .grad_norm_rel_err = 1e-7, .max_grad_rel_err = 0, .worst_tensor = "w"};
  EXPECT_TRUE(good.ok());
  const double nan = std::nan("");
  for (double ParityResult::*error : {&ParityResult::loss_rel_err,
                                      &ParityResult::grad_norm_rel_err,
                                      &ParityResult::max_grad_rel_err}) {
    for (const double bad : {1.01e-5, nan, std::numeric_limits<double>::infinity()}) {
      ParityResult r = good;
      r.*error = bad;
      EXPECT_FALSE(r.ok());
    }
  }
  ParityResult r = good;
  r.copies_equal = false;
  EXPECT_FALSE(r.ok());
}

TEST(ParityResult, JsonRoundTripKeepsNaNNotOk) {
  std::vector<ParityResult> results = {
      {.loss_rel_err = 1e-9, .max_grad_rel_err = 2e-6, .worst_tensor = "lm_head.weight"},
      {.loss_rel_err = std::nan(""), .worst_tensor = "x", .copies_equal = false}};
  const auto back = parse_parity_results(to_json_text(results), "results.json").value();
  ASSERT_EQ(back.size(), 2u);
  EXPECT_TRUE(back[0].ok());
  EXPECT_EQ(back[0].max_grad_rel_err, 2e-6);
  EXPECT_EQ(back[0].worst_tensor, "lm_head.weight");
  EXPECT_TRUE(std::isnan(back[1].loss_rel_err));
  EXPECT_FALSE(back[1].ok());
  EXPECT_FALSE(parse_parity_results("{\"schema_version\": 1}", "results.json").has_value());
}

}  // namespace
}  // namespace meshwright
