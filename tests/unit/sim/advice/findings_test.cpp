// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/findings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::make_plan;
using testing::make_problem;

std::shared_ptr<const Problem> llama_70b(const std::string& cluster, int64_t batch) {
  return make_problem(
      builtin_model("llama-3-70b"), builtin_cluster(cluster), 4096, batch, Precision::kBf16);
}

Diagnosis diagnosis_of(const Plan& plan) {
  const CostModel cost(plan.cluster(), nullptr);
  return diagnose(plan, simulate(plan, cost), cost);
}

const Finding* finding(const Diagnosis& d, const std::string& id) {
  const auto it = std::find_if(
      d.findings.begin(), d.findings.end(), [&](const Finding& f) { return f.id == id; });
  return it == d.findings.end() ? nullptr : &*it;
}

/// Every simulated remedy is what simulating it gives, and a finding is beyond its threshold.
void expect_honest(const Diagnosis& d) {
  for (const Finding& f : d.findings) {
    EXPECT_FALSE(f.text.empty());
    EXPECT_FALSE(f.cause.empty());
    if (f.id == "mfu") {
      EXPECT_LT(f.value, f.threshold);
    } else if (f.id != "alignment") {
      EXPECT_GT(f.value, f.threshold) << f.id;
    }
    for (const Remedy& r : f.remedies) {
      if (!r.result) {
        EXPECT_FALSE(r.effect.empty());
        continue;
      }
      if (r.action.find("network") != std::string::npos) continue;  // on another cluster
      const Plan& p = r.result->plan;
      const Simulation s = simulate(p, CostModel(p.cluster(), nullptr));
      EXPECT_EQ(s.report.step_time, r.result->step_time) << r.action;
      EXPECT_EQ(s.report.peak_memory, r.result->peak) << r.action;
    }
  }
}

TEST(Findings, BubbleNamesTheMicroBatchesThatItTakes) {
  const Plan plan =
      make_plan(llama_70b("64xa100-80g", 32),
                {.dp_shard = 2, .tp = 8, .sp = true, .pp = 4, .micro_batch = 2, .zero_stage = 1});
  const Diagnosis d = diagnosis_of(plan);
  expect_honest(d);
  const Finding* bubble = finding(d, "bubble");
  ASSERT_NE(bubble, nullptr);
  EXPECT_GT(bubble->value, 0.1);
  EXPECT_NE(bubble->cause.find("8 micro-batches for 4 stages; below 10 % takes 28 of equal stages"),
            std::string::npos)
      << bubble->cause;
  std::vector<std::string> actions;
  for (const Remedy& r : bubble->remedies) actions.push_back(r.action);
  EXPECT_NE(std::find(actions.begin(), actions.end(), "micro_batch=1"), actions.end());
  // The head makes the last stage longer: 28 are not quite enough, and the batch that is said to
  // be enough is.
  const CostModel cost(plan.cluster(), nullptr);
  const Plan& larger = bubble->remedies.back().result->plan;
  EXPECT_GE(larger.num_micro_batches(), 28);
  EXPECT_LE(larger.num_micro_batches(), 56);
  EXPECT_LT(simulate(larger, cost).bubble_fraction, 0.1);
}

TEST(Findings, TensorParallelismOverNodesAndBeyondKvHeads) {
  const Plan plan =
      make_plan(llama_70b("64xa100-80g", 64), {.tp = 16, .sp = true, .pp = 4, .micro_batch = 1});
  const Diagnosis d = diagnosis_of(plan);
  expect_honest(d);
  const Finding* reach = finding(d, "tp_across_nodes");
  ASSERT_NE(reach, nullptr);
  ASSERT_FALSE(reach->remedies.empty());
  const Seconds now = simulate(plan, CostModel(plan.cluster(), nullptr)).report.step_time;
  EXPECT_LT(reach->remedies.front().result->step_time, now);
  const Finding* kv = finding(d, "kv_heads");
  ASSERT_NE(kv, nullptr);
  EXPECT_NE(kv->text.find("tp 16 exceeds the 8 KV heads: each is held by 2 ranks"),
            std::string::npos);
  EXPECT_NE(finding(d, "communication"), nullptr);
}

// Korthikanti et al., arXiv:2205.05198: the tensors between the tensor-parallel regions are held tp
// times over without sequence parallelism.
TEST(Findings, SequenceParallelismShrinksWhatIsReplicated) {
  const Plan plan =
      make_plan(llama_70b("64xa100-80g", 64), {.dp_shard = 2, .tp = 8, .pp = 4, .zero_stage = 1});
  const Diagnosis d = diagnosis_of(plan);
  expect_honest(d);
  const Finding* f = finding(d, "sequence_parallel");
  ASSERT_NE(f, nullptr);
  ASSERT_EQ(f->remedies.size(), 1u);
  const Bytes peak = simulate(plan, CostModel(plan.cluster(), nullptr)).report.peak_memory;
  EXPECT_LT(f->remedies.front().result->peak, peak);
}

TEST(Findings, RecomputeSaysWhatKeepingWouldTakeAndNeed) {
  const Plan plan = make_plan(llama_70b("64xa100-80g", 128),
                              {.dp_shard = 4,
                               .tp = 8,
                               .sp = true,
                               .pp = 2,
                               .micro_batch = 4,
                               .zero_stage = 1,
                               .recompute = Recompute::kFull});
  const Diagnosis d = diagnosis_of(plan);
  expect_honest(d);
  const Finding* f = finding(d, "recompute");
  ASSERT_NE(f, nullptr);
  ASSERT_EQ(f->remedies.size(), 1u);
  const Variant& none = *f->remedies.front().result;
  const Simulation s = simulate(plan, CostModel(plan.cluster(), nullptr));
  EXPECT_LT(none.step_time, s.report.step_time);
  EXPECT_GT(none.peak, s.report.peak_memory);
}

TEST(Findings, FullMemoryOffersWhatSavesBytes) {
  auto problem = std::make_shared<Problem>(*llama_70b("64xa100-80g", 128));
  const Layout l{.dp_shard = 4, .tp = 8, .sp = true, .pp = 2, .zero_stage = 1};
  // A device that the layout fills to 98 %.
  const Bytes peak =
      simulate(make_plan(problem, l), CostModel(problem->cluster, nullptr)).report.peak_memory;
  problem->cluster.device.memory = peak / 0.98 + problem->cluster.device.reserved;
  const Diagnosis d = diagnosis_of(make_plan(problem, l));
  expect_honest(d);
  const Finding* f = finding(d, "memory");
  ASSERT_NE(f, nullptr);
  EXPECT_NEAR(f->value, 0.98, 1e-9);
  const auto saves = [&](const std::string& action) {
    for (const Remedy& r : f->remedies) {
      if (r.action == action) return r.result->peak < peak;
    }
    return false;
  };
  EXPECT_TRUE(saves("recompute=full"));
  EXPECT_TRUE(saves("zero_stage=3"));
  EXPECT_TRUE(saves("offload_optimizer=host"));
}

TEST(Findings, MisalignedHeadsAndUnfusedAttention) {
  ModelSpec m = builtin_model("llama-3.2-1b");
  m.head_dim = 60;
  const auto problem = make_problem(m, builtin_cluster("8xa100-80g"), 2048, 64, Precision::kBf16);
  const Diagnosis d =
      diagnosis_of(make_plan(problem, {.dp_replicate = 8, .flash_attention = false}));
  const Finding* f = finding(d, "alignment");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->value, 60);
  EXPECT_NE(f->text.find("head_dim = 60 is not a multiple of 8"), std::string::npos);
  const Finding* attention = finding(d, "attention");
  ASSERT_NE(attention, nullptr);
  EXPECT_NE(attention->note.find("O(n^2) to O(n)"), std::string::npos);
}

TEST(Findings, AGoodPlanPassesEveryCheck) {
  const auto problem = make_problem(
      builtin_model("llama-3-8b"), builtin_cluster("8xh100"), 4096, 256, Precision::kBf16);
  const Diagnosis d = diagnosis_of(
      make_plan(problem, {.dp_shard = 4, .tp = 2, .sp = true, .micro_batch = 1, .zero_stage = 1}));
  EXPECT_TRUE(d.findings.empty()) << d.findings.front().text;
  EXPECT_GE(d.passed.size(), 5u);
}

}  // namespace
}  // namespace meshwright
