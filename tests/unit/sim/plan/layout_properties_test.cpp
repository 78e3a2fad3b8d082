// SPDX-License-Identifier: Apache-2.0
// Random models and layouts: what validate() accepts covers the model once; and refusals that users
// of other systems reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

// Megatron-LM 1304: 30 layers on four stages ran 28; 468: 80 layers in parts of two ran 64.
TEST(LayoutProperties, StagesCoverEveryLayerOnceInEachCopy) {
  int accepted = 0;
  EXPECT_TRUE(rc::check("every layer once", [&] {
    ModelSpec m = testing::small_model();
    m.num_layers = *rc::gen::inRange<int64_t>(1, 130);
    Layout l;
    l.schedule = static_cast<ScheduleKind>(*rc::gen::inRange(0, kNumScheduleKinds));
    l.pp = *rc::gen::inRange(1, 17);
    const bool parts = l.schedule == ScheduleKind::kInterleaved;
    l.virtual_stages = parts ? *rc::gen::inRange(2, 6) : l.schedule == ScheduleKind::kZbV ? 2 : 1;
    l.precision = Precision::kFp32;
    if (*rc::gen::arbitrary<bool>()) {  // a split by hand, right or wrong
      l.stages = *rc::gen::container<std::vector<int>>(static_cast<size_t>(l.num_parts()),
                                                       rc::gen::inRange(0, 12));
    }
    const auto problem = testing::make_problem(
        m, testing::ideal_cluster(static_cast<int>(l.world_size())), 16, 64, Precision::kFp32);
    const ValidationOutcome outcome = validate(problem, l);
    if (!outcome.plan) {
      RC_ASSERT(!outcome.violations.empty());
      return;
    }
    ++accepted;
    const StageMap& map = outcome.plan->stage_map();
    std::vector<int> held(static_cast<size_t>(num_blocks(m)));
    for (int i = 0; i < map.size(); ++i) {
      RC_ASSERT(map[i].rank >= 0 && map[i].rank < l.pp);
      for (int b = map[i].block_begin; b < map[i].block_end; ++b) ++held[static_cast<size_t>(b)];
    }
    for (const int n : held) RC_ASSERT(n == l.model_copies());
  }));
  EXPECT_GT(accepted, 10);
}

std::vector<std::string> refusals(const ModelSpec& model, int devices, const Layout& layout) {
  const auto problem =
      testing::make_problem(model,
                            testing::builtin_cluster(std::to_string(devices) + "xh100"),
                            512,
                            64,
                            Precision::kBf16);
  std::vector<std::string> out;
  for (const Error& e : validate(problem, layout).violations) out.push_back(to_string(e));
  return out;
}

// vllm 1705, 414 and 596: 25 heads divide by 5 and not by 2; 52 and 40 do not divide by 3.
TEST(LayoutProperties, HeadsThatDoNotDivideNameTheNearestDegree) {
  const auto with_heads = [](int64_t heads) {
    ModelSpec m = testing::small_model();
    m.num_heads = m.num_kv_heads = heads;
    return m;
  };
  EXPECT_THAT(refusals(with_heads(25), 2, {.tp = 2}),
              ::testing::ElementsAre(HasSubstr("use tp=1 or tp=5")));
  EXPECT_TRUE(refusals(with_heads(25), 5, {.tp = 5}).empty());
  EXPECT_THAT(refusals(with_heads(52), 3, {.tp = 3}),
              ::testing::ElementsAre(HasSubstr("use tp=2 or tp=4")));
  EXPECT_THAT(refusals(with_heads(40), 3, {.tp = 3}),
              ::testing::ElementsAre(HasSubstr("use tp=2 or tp=4")));
}

// sglang 19086: two key/value heads on tp 4 are legal, one on each rank.
TEST(LayoutProperties, KeyValueHeadsMayBeReplicated) {
  ModelSpec m = testing::small_model();
  m.num_heads = 8;
  for (const int64_t kv : {1, 2}) {
    m.num_kv_heads = kv;
    for (const int tp : {2, 4, 8}) EXPECT_TRUE(refusals(m, tp, {.tp = tp}).empty()) << kv << tp;
  }
}

// Megatron-LM 468: 80 layers on 16 stages in parts of two layers are 2.5 parts a stage. Nothing is
// dropped: two or three parts a stage take 80 layers between them, six do not.
TEST(LayoutProperties, PartsOfEightyLayersOnSixteenStages) {
  ModelSpec m = testing::small_model();
  m.num_layers = 80;
  for (const int v : {2, 3, 5}) {
    const auto problem =
        testing::make_problem(m, testing::builtin_cluster("16xh100"), 512, 64, Precision::kBf16);
    const Plan plan = testing::make_plan(
        problem, {.pp = 16, .virtual_stages = v, .schedule = ScheduleKind::kInterleaved});
    int layers = 0;
    for (const int s : plan.layout().stages) layers += s;
    EXPECT_EQ(layers, 80) << v;
  }
  EXPECT_THAT(
      refusals(m, 16, {.pp = 16, .virtual_stages = 6, .schedule = ScheduleKind::kInterleaved}),
      ::testing::Contains(HasSubstr("use virtual_stages=5")));
}

}  // namespace
}  // namespace meshwright
