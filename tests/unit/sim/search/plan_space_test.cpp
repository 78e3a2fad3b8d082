// SPDX-License-Identifier: Apache-2.0
#include "sim/search/plan_space.h"

#include <gtest/gtest.h>

#include "sim/search/search.h"

namespace meshwright {
namespace {

Problem gpu_problem(const char* model, const char* cluster, int64_t sequences) {
  Problem p{.model = load_model(model).value(),
            .cluster =
                load_cluster(cluster, {.cores = 1, .memory = Bytes{8e9}, .cpu_model = "", .id = ""})
                    .value()};
  p.workload.seq_len = 4096;
  p.workload.global_batch = sequences;
  return p;
}

double s_devices(const Found& x) {
  const StepLayout& l = x.candidate.layout;
  return l.shard.tp * l.shard.cp * l.pp * l.dp;
}

double mfu(const StepProblem& p, const Found& x) {
  return model_flops(p.model, p.work.global_batch, p.work.seq, true) /
         (x.value.time_s * s_devices(x) * p.device.peak_bf16);
}

TEST(PlanSpace, Llama70bOn64DevicesStaysInTheNode) {
  const PlanSearch s = *plan_search(gpu_problem("llama-3-70b", "64xa100-80g", 1024));
  const SearchResult r = search(s.problem, s.space, {.capacity_bytes = 76e9});
  ASSERT_FALSE(r.best.empty());
  const Found& best = r.best.front();
  EXPECT_LE(best.candidate.layout.shard.tp, 8);
  EXPECT_GT(best.candidate.layout.shard.tp * best.candidate.layout.pp, 1);
  EXPECT_EQ(s_devices(best), 64);
  EXPECT_GT(mfu(s.problem, best), 0.2);
  EXPECT_LT(mfu(s.problem, best), 0.7);
  EXPECT_GT(r.too_big, 0);
}

TEST(PlanSpace, DeepSeekWantsExpertParallelism) {
  // H800: an H100 whose NVLink carries 200 GB/s one way (DeepSeek-V3, arXiv:2412.19437).
  Problem problem = gpu_problem("deepseek-v3", "2048xh100", 15360);
  problem.cluster.intra_node.bandwidth = BytesPerSecond{200e9};
  const PlanSearch s = *plan_search(problem);
  const SearchResult r = search(s.problem, s.space, {.capacity_bytes = 76e9});
  ASSERT_FALSE(r.best.empty());
  const Found& best = r.best.front();
  EXPECT_GT(best.candidate.layout.shard.ep, 1);
  EXPECT_LE(best.candidate.layout.shard.tp, 8);
  EXPECT_GT(mfu(s.problem, best), 0.2);
  EXPECT_LT(mfu(s.problem, best), 0.7);
}

TEST(PlanSpace, CpuRanksHaveNone) {
  EXPECT_FALSE(plan_search(gpu_problem("llama-3-8b", "4xlocal", 16)).has_value());
}

}  // namespace
}  // namespace meshwright
