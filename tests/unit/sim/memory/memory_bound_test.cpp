// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/memory_bound.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/simulator/simulate.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::builtin_cluster;
using testing::builtin_model;
using testing::make_plan;
using testing::make_problem;

Plan gpu_plan(const char* model, const char* cluster, const Layout& layout, int64_t batch = 64) {
  return make_plan(
      make_problem(builtin_model(model), builtin_cluster(cluster), 2048, batch, Precision::kBf16),
      layout);
}

Simulation simulated(const Plan& plan) {
  return simulate(plan, CostModel(plan.cluster(), nullptr));
}

TEST(MemoryBound, OfACpuRankIsItsPeak) {
  for (const Layout& l : testing::all_layouts()) {
    const Plan plan = testing::ideal_plan(testing::small_model(), l, 16, 64);
    const Simulation s = simulate(plan, testing::ideal_cost(plan.cluster()));
    const MemoryBound& b = *s.report.memory_bound;
    EXPECT_EQ(b.upper, s.report.peak_memory) << summary(l);
    EXPECT_EQ(b.coverage, 1);
    EXPECT_EQ(b.first_step_peak, s.report.peak_memory);  // moments are made before the first step
    EXPECT_EQ((b.fragmentation + b.workspace + b.communicators).v, 0);
  }
}

TEST(MemoryBound, IsThePeakAndItsTerms) {
  const Simulation s = simulated(
      gpu_plan("llama-3-8b", "16xh100", {.dp_shard = 2, .tp = 4, .pp = 2, .zero_stage = 1}));
  const MemoryBound& b = *s.report.memory_bound;
  EXPECT_TRUE(
      testing::near_rel(b.upper.v,
                        (s.report.peak_memory + b.fragmentation + b.workspace + b.communicators).v,
                        1e-12));
  EXPECT_GT(b.fragmentation.v, 0);
  EXPECT_EQ(b.coverage, 0.95);
  EXPECT_GT(b.upper, s.report.peak_memory);
}

// The verdict uses the bound: a plan whose point estimate fits and whose bound does not is refused.
TEST(MemoryBound, DecidesTheVerdict) {
  auto problem = std::make_shared<Problem>(*make_problem(
      builtin_model("llama-3-8b"), builtin_cluster("8xh100"), 2048, 64, Precision::kBf16));
  const Layout l{.tp = 8, .sp = true};
  const Simulation roomy = simulated(make_plan(problem, l));
  EXPECT_TRUE(roomy.fits);
  const Bytes peak = roomy.report.peak_memory;
  const Bytes upper = roomy.report.memory_bound->upper;
  problem->cluster.device.memory = problem->cluster.device.reserved + (peak + upper) / 2.0;
  EXPECT_FALSE(simulated(make_plan(problem, l)).fits);
  problem->cluster.device.memory = problem->cluster.device.reserved + upper;
  EXPECT_TRUE(simulated(make_plan(problem, l)).fits);
}

TEST(MemoryBound, GrowsWithThePeak) {
  const Plan plan = gpu_plan("llama-3-8b", "8xh100", {.tp = 8});
  EXPECT_LT(memory_upper_bound(plan, Bytes{1e9}), memory_upper_bound(plan, Bytes{1.001e9}));
}

/// Distinct groups of more than one rank that hold `rank`, and its pipeline neighbours.
int counted_groups(const Plan& plan, int rank) {
  const Mesh mesh(plan.layout());
  std::set<std::vector<int>> groups;
  std::vector<GroupKind> kinds = {GroupKind::kTp,
                                  GroupKind::kCp,
                                  GroupKind::kDp,
                                  GroupKind::kDpShard,
                                  GroupKind::kDpReplicate,
                                  GroupKind::kWorld};
  for (const GroupKind kind : kinds) groups.insert(mesh.group(kind, rank));
  std::erase_if(groups, [](const auto& g) { return g.size() < 2; });
  const int stage = mesh.coord(rank).pp;
  const int last = plan.layout().pp - 1;
  const int neighbours = (stage > 0 ? 1 : 0) + (stage < last ? 1 : 0);
  const bool tie = plan.model().tied_embeddings && last > 0 && (stage == 0 || stage == last);
  return static_cast<int>(groups.size()) + neighbours + (tie ? 1 : 0);
}

TEST(MemoryBound, CountsTheGroupsOfTheMesh) {
  for (const bool tied : {false, true}) {
    ModelSpec model = testing::small_model();
    model.tied_embeddings = tied;
    for (const Layout& l : testing::all_layouts()) {
      const Plan plan = testing::ideal_plan(model, l);
      int most = 0;
      for (int r = 0; r < plan.world_size(); ++r) most = std::max(most, counted_groups(plan, r));
      EXPECT_EQ(communicators_of_rank(plan), most) << summary(l) << " tied " << tied;
    }
  }
}

// nccl 964 and 864: 544 MB of a communicator of two, 688 MB of a larger one; a rank of tp 2, pp 2,
// dp 2 on H100 holds about 7 GB outside the allocator, 40 % either way.
TEST(MemoryBound, OutsideTheAllocatorIsAsReported) {
  EXPECT_EQ(communicator_bytes(1).v, 0);
  EXPECT_EQ(communicator_bytes(2).v, 544.0 * (1 << 20));
  EXPECT_EQ(communicator_bytes(8).v, 688.0 * (1 << 20));
  const Plan plan =
      gpu_plan("llama-3-8b", "8xh100", {.dp_shard = 2, .tp = 2, .pp = 2, .zero_stage = 1});
  const MemoryBound b = *simulated(plan).report.memory_bound;
  EXPECT_EQ(b.num_communicators, 4);  // world, tp, dp and the other stage
  EXPECT_NEAR((b.communicators + plan.cluster().device.reserved).v / 7e9, 1, 0.4);
}

// Megatron-LM 640: Adam's moments appear at the first optimizer step; the steady state is judged.
TEST(MemoryBound, TheFirstStepHasNoMoments) {
  const Plan plan = gpu_plan("llama-3-8b", "8xh100", {.tp = 8, .micro_batch = 4});
  const Simulation s = simulated(plan);
  const double parameters = s.report[MemoryTerm::kWeights].v / 2;
  EXPECT_TRUE(testing::near_rel(
      s.report.memory_bound->first_step_peak.v, s.report.peak_memory.v - 8 * parameters, 1e-12));
  // Without activations to speak of the optimizer step itself is the peak of both.
  const Simulation bare =
      simulated(gpu_plan("llama-3-8b", "8xh100", {.tp = 8, .recompute = Recompute::kFull}));
  EXPECT_LE(bare.report.memory_bound->first_step_peak, bare.report.peak_memory);
}

// A 70 B model's checkpoint: 840 GB of master and moments, 140 GB of BF16 weights, each byte once.
TEST(MemoryBound, SnapshotsOfAllRanksAreTheCheckpointOnce) {
  const ModelSpec model = builtin_model("llama-3-70b");
  const double p = 70'553'706'496.0;
  const double norms = 161 * 8192.0;  // whole on each of 8 tensor ranks, each of which writes them
  for (const Layout& l : {Layout{.dp_shard = 8, .tp = 8, .zero_stage = 1},
                          Layout{.dp_replicate = 8, .tp = 8},
                          Layout{.dp_replicate = 2, .dp_shard = 4, .tp = 8, .zero_stage = 1},
                          Layout{.dp_shard = 8, .tp = 8, .zero_stage = 3}}) {
    const Plan plan = gpu_plan("llama-3-70b", "64xh100", l);
    double sum = 0;
    for (int r = 0; r < 64; ++r) {
      const MemoryProfile m = resident_memory(plan, PlacementTable(plan).of_rank(r));
      sum += memory_bound(plan, m).snapshot.v;
    }
    EXPECT_TRUE(testing::near_rel(sum, 14 * (p + 7 * norms), 1e-12)) << summary(l);
  }
}

}  // namespace
}  // namespace meshwright
