// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/program.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::ideal_plan;
using testing::small_model;

std::vector<Plan> plans() {
  std::vector<Plan> out;
  for (const bool tied : {false, true}) {
    ModelSpec m = small_model();
    m.tied_embeddings = tied;
    for (const Layout& l : testing::legal_layouts()) out.push_back(ideal_plan(m, l));
  }
  return out;
}

std::string text(const std::vector<Action>& actions, int stage) {
  std::string out;
  for (const Action& a : actions) out += (out.empty() ? "" : " ") + to_string(a, stage);
  return out;
}

/// Blocks that `kind` walks, per (block, micro-batch).
std::map<std::pair<int, int>, int> walks(const Program& program, ActionKind kind) {
  std::map<std::pair<int, int>, int> count;
  for (const auto& actions : program.stages) {
    for (const Action& a : actions) {
      if (a.kind != kind) continue;
      for (int b = a.block_begin; b < a.block_end; ++b) ++count[{b, a.micro_batch}];
    }
  }
  return count;
}

TEST(Program, FirstRankOfTp2Pp2WithTwoMicroBatches) {
  ModelSpec m = small_model();
  m.tied_embeddings = true;
  m.num_layers = 2;
  const Program p =
      build_program(ideal_plan(m, {.dp_replicate = 2, .tp = 2, .pp = 2, .micro_batch = 2}));
  EXPECT_EQ(text(p.stages[0], 0),
            "forward(s0,m0,b0-1) send(s0,m0,forward) forward(s0,m1,b0-1) send(s0,m1,forward) "
            "recv(s0,m0,backward) backward(s0,m0,b0-1) "
            "recv(s0,m1,backward) backward(s0,m1,b1-1) reduce(s0,k1) backward(s0,m1,b0-0) "
            "sum_tied(s0,k0) reduce(s0,k0) wait_reduce(s0,k1) wait_reduce(s0,k0) "
            "grad_norm(s0) optimizer(s0,k0) optimizer(s0,k1)");
  EXPECT_EQ(text(p.stages[1], 1).substr(0, 101),
            "recv(s1,m0,forward) forward(s1,m0,b2-3) backward(s1,m0,b2-3) send(s1,m0,backward) "
            "recv(s1,m1,forward)");
}

TEST(Program, EveryBlockAndMicroBatchForwardAndBackwardOnce) {
  for (const Plan& plan : plans()) {
    const Program p = build_program(plan);
    EXPECT_EQ(p.num_micro_batches, plan.num_micro_batches());
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      const auto count = walks(p, kind);
      EXPECT_EQ(count.size(), 6u * static_cast<size_t>(plan.num_micro_batches()));
      for (const auto& [where, n] : count) EXPECT_EQ(n, 1) << summary(plan.layout());
    }
    const size_t recomputed =
        plan.layout().recompute == Recompute::kFull ? 4 : 0;  // decoder layers
    EXPECT_EQ(walks(p, ActionKind::kRecompute).size(),
              recomputed * static_cast<size_t>(plan.num_micro_batches()));
  }
}

TEST(Program, BackwardFollowsForwardAndRecomputeOnEveryStage) {
  for (const Plan& plan : plans()) {
    for (const auto& actions : build_program(plan).stages) {
      std::set<std::pair<int, int>> forward, recomputed, backward;
      for (const Action& a : actions) {
        for (int b = a.block_begin; b < a.block_end; ++b) {
          const std::pair key{b, a.micro_batch};
          if (a.kind == ActionKind::kForward) forward.insert(key);
          if (a.kind == ActionKind::kRecompute) {
            EXPECT_TRUE(forward.contains(key));
            recomputed.insert(key);
          }
          if (a.kind == ActionKind::kBackward) {
            EXPECT_TRUE(forward.contains(key));
            const bool decoder = b > 0 && b < 5;
            if (plan.layout().recompute == Recompute::kFull && decoder) {
              EXPECT_TRUE(recomputed.contains(key));
            }
            EXPECT_TRUE(backward.insert(key).second);
          }
        }
      }
    }
  }
}

TEST(Program, SendsMatchTheNeighboursReceivesInOrder) {
  for (const Plan& plan : plans()) {
    const Program p = build_program(plan);
    const auto transfers = [&](size_t stage, ActionKind kind, Direction d) {
      std::vector<int> out;
      for (const Action& a : p.stages[stage]) {
        if (a.kind == kind && a.direction == d) out.push_back(a.micro_batch);
      }
      return out;
    };
    const auto m = static_cast<size_t>(plan.num_micro_batches());
    for (size_t s = 0; s + 1 < p.stages.size(); ++s) {
      EXPECT_EQ(transfers(s, ActionKind::kSend, Direction::kForward),
                transfers(s + 1, ActionKind::kRecv, Direction::kForward));
      EXPECT_EQ(transfers(s + 1, ActionKind::kSend, Direction::kBackward),
                transfers(s, ActionKind::kRecv, Direction::kBackward));
      EXPECT_EQ(transfers(s, ActionKind::kSend, Direction::kForward).size(), m);
    }
    EXPECT_TRUE(transfers(0, ActionKind::kRecv, Direction::kForward).empty());
    EXPECT_TRUE(transfers(p.stages.size() - 1, ActionKind::kSend, Direction::kForward).empty());
  }
}

TEST(Program, EveryBucketIsReducedOnceAfterItsLastBackwardAndOptimizedOnce) {
  for (const Plan& plan : plans()) {
    const Program p = build_program(plan);
    const auto placements = stage_placements(plan);
    for (size_t s = 0; s < p.stages.size(); ++s) {
      std::map<ActionKind, std::vector<int>> buckets;
      std::set<int> backward_done;
      bool norm = false;
      for (const Action& a : p.stages[s]) {
        if (a.kind == ActionKind::kBackward && a.micro_batch + 1 == p.num_micro_batches) {
          for (int b = a.block_begin; b < a.block_end; ++b) backward_done.insert(b);
        }
        if (a.kind == ActionKind::kReduce || a.kind == ActionKind::kSumCopies ||
            a.kind == ActionKind::kSumTied) {
          EXPECT_TRUE(
              backward_done.contains(placements[s].buckets[static_cast<size_t>(a.bucket)].block));
          EXPECT_FALSE(norm);
        }
        if (a.kind == ActionKind::kOptimizer) {
          EXPECT_TRUE(norm);
        }
        norm = norm || a.kind == ActionKind::kGradNorm;
        if (a.bucket >= 0) buckets[a.kind].push_back(a.bucket);
      }
      EXPECT_TRUE(norm);
      const auto sorted = [&](ActionKind k) {
        std::vector<int> v = buckets[k];
        std::sort(v.begin(), v.end());
        return v;
      };
      std::vector<int> all;
      for (size_t i = 0; i < placements[s].buckets.size(); ++i) all.push_back(static_cast<int>(i));
      EXPECT_EQ(sorted(ActionKind::kOptimizer), all);
      const bool dp = plan.layout().dp() > 1;
      EXPECT_EQ(sorted(ActionKind::kReduce), dp ? all : std::vector<int>{});
      EXPECT_EQ(sorted(ActionKind::kWaitReduce), dp ? all : std::vector<int>{});
      const bool zero = plan.layout().zero_stage > 0;
      EXPECT_EQ(sorted(ActionKind::kGather), zero ? all : std::vector<int>{});
      EXPECT_EQ(sorted(ActionKind::kWaitGather), zero ? all : std::vector<int>{});
    }
  }
}

}  // namespace
}  // namespace meshwright
