// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/program_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <numeric>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using testing::ideal_plan;
using testing::small_model;

/// A random legal pipeline: any schedule, first and last part of another size, a remainder of
/// micro-batches, recompute, ties, data parallelism.
Plan random_pipeline() {
  Layout l;
  l.schedule = static_cast<ScheduleKind>(*rc::gen::inRange(0, kNumScheduleKinds));
  const bool needs_pipeline =
      l.schedule != ScheduleKind::kGpipe && l.schedule != ScheduleKind::k1f1b;
  l.pp = *rc::gen::inRange(needs_pipeline ? 2 : 1, 7);
  if (l.schedule == ScheduleKind::kDualPipe) l.pp = 2 * ((l.pp + 1) / 2);
  if (l.schedule == ScheduleKind::kInterleaved) l.virtual_stages = *rc::gen::inRange(2, 5);
  if (l.schedule == ScheduleKind::kZbV) l.virtual_stages = 2;
  l.recompute = *rc::gen::element(Recompute::kNone, Recompute::kFull);
  for (int i = 0; i < l.num_parts(); ++i) l.stages.push_back(*rc::gen::inRange(1, 4));
  const int shard = *rc::gen::element(1, 2);
  if (shard > 1) {
    l.dp_shard = shard;
    l.zero_stage = splits_backward(l.schedule) ? 1 : *rc::gen::inRange(1, 4);
    l.prefetch = *rc::gen::inRange(0, 4);
    l.reshard = *rc::gen::arbitrary<bool>();
    l.persistence_threshold = *rc::gen::element<int64_t>(0, 100, 1500, 1'000'000);
    l.reduce_bucket = *rc::gen::element<int64_t>(0, 10'000, 20'000, 1'000'000);
    const int some = std::min(2, std::accumulate(l.stages.begin(), l.stages.end(), 0));
    l.recompute_layers = l.recompute == Recompute::kFull ? *rc::gen::inRange(0, some + 1) : 0;
  }
  auto m = static_cast<int64_t>(min_micro_batches(l.schedule, l.pp) + *rc::gen::inRange(0, 20));
  if (l.schedule == ScheduleKind::kDualPipe) m += m % 2;
  ModelSpec model = small_model();
  model.num_layers = std::accumulate(l.stages.begin(), l.stages.end(), int64_t{0});
  model.tied_embeddings = *rc::gen::arbitrary<bool>();
  return ideal_plan(model, l, 16, m * l.dp());
}

TEST(ProgramCheck, EveryScheduleIsCompleteAndFreeOfDeadlock) {
  EXPECT_TRUE(rc::check("a random pipeline", [] {
    const Plan plan = random_pipeline();
    const auto error = check_program(plan, build_program(plan));
    if (error) RC_FAIL(summary(plan.layout()) + ": " + to_string(*error));
  }));
}

TEST(ProgramCheck, ALostOrDoubledActionIsFound) {
  EXPECT_TRUE(rc::check("one action less or twice", [] {
    const Plan plan = random_pipeline();
    Program program = build_program(plan);
    std::vector<Action>& list =
        program.stages[static_cast<size_t>(*rc::gen::inRange(0, plan.layout().pp))];
    std::vector<size_t> candidates;
    for (size_t i = 0; i < list.size(); ++i) {
      const bool matters = walks_blocks(list[i].kind) || list[i].kind == ActionKind::kSend ||
                           list[i].kind == ActionKind::kRecv;
      if (matters) candidates.push_back(i);
    }
    const auto at = list.begin() + static_cast<long>(*rc::gen::elementOf(candidates));
    if (*rc::gen::arbitrary<bool>()) {
      list.erase(at);
    } else {
      list.insert(at, *at);
    }
    RC_ASSERT(check_program(plan, program).has_value());
  }));
}

Plan two_ranks() { return ideal_plan(small_model(), {.pp = 2, .micro_batch = 1}, 16, 2); }

std::string message(const Plan& plan, const Program& program) {
  const auto error = check_program(plan, program);
  return error ? error->rule : "fine";
}

TEST(ProgramCheck, NamesTheMissingPair) {
  const Plan plan = two_ranks();
  Program program = build_program(plan);
  std::erase_if(program.stages[0],
                [](const Action& a) { return a.kind == ActionKind::kSend && a.micro_batch == 1; });
  EXPECT_THAT(
      message(plan, program),
      HasSubstr("of the outputs of virtual stage 0, number 1 is sent for micro-batch -1 and "
                "received for 1"));
}

TEST(ProgramCheck, NamesTheBlockThatIsLeftOut) {
  const Plan plan = two_ranks();
  Program program = build_program(plan);
  // Layer 3 (block 3) of the last micro-batch is not walked backwards.
  for (Action& a : program.stages[1]) {
    if (a.kind == ActionKind::kForward && a.micro_batch == 1) a.block_begin = 4;
  }
  EXPECT_THAT(message(plan, program), HasSubstr("forward(s1,m1,b4-5) comes before what it reads"));
  Program shorter = build_program(plan);
  for (Action& a : shorter.stages[0]) {
    if (a.kind == ActionKind::kBackward && a.micro_batch == 0) a.block_begin = 1;
  }
  EXPECT_THAT(message(plan, shorter),
              HasSubstr("block 0 of micro-batch 0 goes 1 times forward, 0 times backward"));
}

TEST(ProgramCheck, NamesTheCycle) {
  // Both ranks wait for the other's message before they send their own: rank 0 wants the gradient
  // of micro-batch 0 before it forwards micro-batch 1, rank 1 both forwards before any backward.
  const Plan plan = two_ranks();
  Program program = build_program(plan);
  std::vector<Action> first, rest;
  for (const Action& a : program.stages[0]) {
    const bool later = a.micro_batch == 1 &&
                       (a.kind == ActionKind::kForward || a.direction == Direction::kForward) &&
                       a.kind != ActionKind::kBackward;
    (later ? rest : first).push_back(a);
  }
  const auto end = std::find_if(first.begin(), first.end(), [](const Action& a) {
    return a.kind == ActionKind::kBackward && a.micro_batch == 0;
  });
  first.insert(end + 1, rest.begin(), rest.end());
  program.stages[0] = first;
  std::vector<Action>& second = program.stages[1];
  std::stable_sort(second.begin(), second.end(), [](const Action& a, const Action& b) {
    const auto forwards = [](const Action& x) {
      return x.kind == ActionKind::kForward ||
             (x.kind == ActionKind::kRecv && x.direction == Direction::kForward);
    };
    return forwards(a) && !forwards(b);
  });
  EXPECT_THAT(
      message(plan, program),
      HasSubstr("ranks wait for each other: rank 0 at recv(s0,m0,backward) waits for rank 1 "
                "at recv(s1,m1,forward) waits for rank 0"));
}

}  // namespace
}  // namespace meshwright
