// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/placement.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "sim/spec/logical_tensors.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::ideal_plan;
using testing::small_model;

/// How often each logical element is held and counted, over the ranks of one data-parallel replica.
struct Coverage {
  std::vector<std::vector<int>> held;
  std::vector<std::vector<int>> counted;
};

Coverage cover(const Plan& plan) {
  const PlacementTable table(plan);
  const Mesh mesh(plan.layout());
  Coverage c;
  for (const TensorPlacement& t : table.tensors()) {
    c.held.emplace_back(static_cast<size_t>(t.logical.numel()));
    c.counted.emplace_back(static_cast<size_t>(t.logical.numel()));
  }
  for (int r = 0; r < mesh.world_size(); ++r) {
    for (const Bucket& bucket : table.of_rank(r).buckets) {
      const GroupKind copies = bucket.experts ? GroupKind::kExpertDp : GroupKind::kDp;
      if (mesh.index_in(copies, r) != 0) continue;
      for (const Segment& s : bucket.segments) {
        const auto t = static_cast<size_t>(s.tensor);
        const std::vector<int64_t>& shape = table.tensors()[t].logical.shape;
        const int64_t width = shape.size() > 1 ? shape.back() : 1;
        const int64_t height = shape.size() == 3 ? shape[1] : shape[0];
        for (int64_t m = 0; m < s.matrices; ++m) {
          for (int64_t i = 0; i < s.rows; ++i) {
            for (int64_t j = 0; j < s.cols; ++j) {
              const int64_t row = (s.matrix_begin + m) * height + s.row_begin + i;
              const auto e = static_cast<size_t>(row * width + s.col_begin + j);
              ++c.held[t].at(e);
              if (s.counted) ++c.counted[t].at(e);
            }
          }
        }
      }
    }
  }
  return c;
}

/// A random legal layout of a random small model: key/value heads fewer than tp, a prime
/// vocabulary, tied or not.
Plan random_plan() {
  ModelSpec m = small_model();
  m.vocab_size = *rc::gen::inRange<int64_t>(3, 70);
  m.d_ff = *rc::gen::inRange<int64_t>(3, 50);
  m.d_model = 2 * *rc::gen::inRange<int64_t>(1, 8);
  m.num_layers = *rc::gen::inRange<int64_t>(1, 5);
  m.num_kv_heads = *rc::gen::element<int64_t>(1, 2, 4, 8);
  m.head_dim = *rc::gen::element<int64_t>(2, 4);
  m.tied_embeddings = *rc::gen::arbitrary<bool>();
  m.qkv_bias = *rc::gen::arbitrary<bool>();
  if (m.qkv_bias) m.family = ModelFamily::kQwen2;
  Layout l;
  l.tp = *rc::gen::element(1, 2, 4, 8);
  l.sp = l.tp > 1 && *rc::gen::arbitrary<bool>();
  l.pp = *rc::gen::inRange(1, static_cast<int>(m.num_layers) + 1);
  l.dp_replicate = *rc::gen::element(1, 2);
  l.dp_shard = *rc::gen::element(1, 2, 4);
  l.cp = *rc::gen::element(1, 2);
  l.zero_stage = l.dp_shard > 1 ? 1 : 0;
  if (*rc::gen::arbitrary<bool>()) {
    m.moe = MoeSpec{.num_experts = 8, .experts_per_token = 2, .d_ff_expert = 11};
    l.expert_tp = l.tp == 1 || !l.sp || *rc::gen::arbitrary<bool>();
    l.ep = l.expert_tp ? *rc::gen::element(1, l.shards()) : l.tp;
  }
  if (l.pp % 2 == 0 && *rc::gen::arbitrary<bool>()) l.schedule = ScheduleKind::kDualPipe;
  if (l.pp > 1 && 2 * l.pp <= m.num_layers && *rc::gen::arbitrary<bool>()) {
    l.schedule = ScheduleKind::kZbV;
    l.virtual_stages = 2;
  }
  return ideal_plan(m, l, 16, 16 * l.dp());
}

TEST(Placement, EveryLogicalElementIsCountedExactlyOnce) {
  EXPECT_TRUE(rc::check("counted once", [] {
    const Coverage c = cover(random_plan());
    for (const auto& tensor : c.counted) {
      for (const int n : tensor) RC_ASSERT(n == 1);
    }
  }));
}

TEST(Placement, CopiesAreHeldAsOftenAsDeclared) {
  EXPECT_TRUE(rc::check("held copies * stages times", [] {
    const Plan plan = random_plan();
    const PlacementTable table(plan);
    const Coverage c = cover(plan);
    for (size_t t = 0; t < c.held.size(); ++t) {
      const TensorPlacement& p = table.tensors()[t];
      const int expected = p.tp_copies * static_cast<int>(p.stages.size());
      for (const int n : c.held[t]) RC_ASSERT(n == expected);
    }
  }));
}

TEST(Placement, BucketsArePackedWithoutGaps) {
  EXPECT_TRUE(rc::check("segments and packed parameters tile the bucket", [] {
    const Plan plan = random_plan();
    const PlacementTable table(plan);
    for (int r = 0; r < plan.world_size(); ++r) {
      for (const Bucket& b : table.of_rank(r).buckets) {
        int64_t next = 0;
        for (const Segment& s : b.segments) {
          RC_ASSERT(s.offset == next);
          next += s.numel();
        }
        RC_ASSERT(next == b.numel);
        int64_t packed = 0;
        for (const PackedParam& p : b.params) {
          RC_ASSERT(p.offset == packed);
          packed += p.matrices * p.rows * p.cols;
        }
        RC_ASSERT(packed == b.numel);
        RC_ASSERT(b.padded_numel >= b.numel);
        const Layout& l = plan.layout();
        const int parts = b.experts ? l.expert_replicas() : l.replicas();
        RC_ASSERT(b.padded_numel < b.numel + parts);
        RC_ASSERT(b.padded_numel % parts == 0);
      }
    }
  }));
}

TEST(Placement, OwnedRangesOfARankListCoverTheBucketOnce) {
  EXPECT_TRUE(rc::check("owned ranges", [] {
    const Plan plan = random_plan();
    const PlacementTable table(plan);
    const Mesh mesh(plan.layout());
    const RankPlacement placement = table.of_rank(0);
    for (const Bucket& b : placement.buckets) {
      std::vector<int> owners(static_cast<size_t>(b.padded_numel));
      for (const int r : mesh.group(b.experts ? GroupKind::kExpertDp : GroupKind::kDp, 0)) {
        if (!table.counts_owned_range(b, r)) continue;
        const ShardRange range = table.owned_range(b, r);
        for (int64_t i = range.begin; i < range.end; ++i) ++owners[static_cast<size_t>(i)];
      }
      for (const int n : owners) RC_ASSERT(n == 1);
    }
  }));
}

TEST(Placement, EveryLayerIsOnExactlyOneStageOfEachCopy) {
  for (const Layout& l : testing::all_layouts()) {
    const Plan plan = ideal_plan(small_model(), l);
    std::map<int, std::vector<int>> ranks_of_block;
    for (int s = 0; s < plan.stage_map().size(); ++s) {
      for (auto [b, end] = plan.blocks_of_stage(s); b < end; ++b)
        ranks_of_block[b].push_back(plan.stage_map()[s].rank);
    }
    EXPECT_EQ(ranks_of_block.size(), 6u);
    for (const auto& [block, ranks] : ranks_of_block)
      EXPECT_EQ(ranks.size(), static_cast<size_t>(plan.layout().model_copies())) << block;
    const PlacementTable table(plan);
    for (const TensorPlacement& t : table.tensors()) {
      EXPECT_EQ(t.stages, ranks_of_block[t.logical.block]) << t.logical.name;
      EXPECT_EQ(t.stages.front(), plan.stage_of_block(t.logical.block));
    }
  }
}

TEST(Placement, PartsOfARankInALoopAVAndMirrored) {
  ModelSpec m = small_model();
  m.num_layers = 8;
  const auto ranks = [&](ScheduleKind kind, int pp, int v) {
    const Plan plan = ideal_plan(m, {.pp = pp, .virtual_stages = v, .schedule = kind}, 16, 16);
    std::vector<std::vector<std::pair<int, int>>> out;
    for (int r = 0; r < pp; ++r) {
      out.emplace_back();
      for (const int s : plan.stage_map().of_rank(r)) out.back().push_back(plan.blocks_of_stage(s));
    }
    return out;
  };
  using Ranges = std::vector<std::vector<std::pair<int, int>>>;
  EXPECT_EQ(ranks(ScheduleKind::kInterleaved, 2, 2), (Ranges{{{0, 3}, {5, 7}}, {{3, 5}, {7, 10}}}));
  EXPECT_EQ(ranks(ScheduleKind::kZbV, 2, 2), (Ranges{{{0, 3}, {7, 10}}, {{3, 5}, {5, 7}}}));
  EXPECT_EQ(ranks(ScheduleKind::kDualPipe, 2, 1), (Ranges{{{0, 5}, {5, 10}}, {{5, 10}, {0, 5}}}));
}

TEST(Placement, ATiedTableIsSharedWhereOneRankHoldsBothEnds) {
  ModelSpec m = small_model();
  m.tied_embeddings = true;
  for (const ScheduleKind kind : {ScheduleKind::kZbV, ScheduleKind::kDualPipe}) {
    const Plan plan = ideal_plan(
        m, {.pp = 2, .virtual_stages = kind == ScheduleKind::kZbV ? 2 : 1, .schedule = kind});
    for (const RankPlacement& rank : stage_placements(plan)) {
      for (const Bucket& b : rank.buckets) EXPECT_FALSE(b.tied);
    }
    const RankPlacement first = stage_placements(plan).front();
    EXPECT_EQ(first.find(5, ParamSlot::kLmHead).first, first.find(0, ParamSlot::kTable).first);
  }
}

TEST(Placement, QueryKeyValueAreOneMatrixOfTheRank) {
  // 8 heads and 2 key/value heads of width 8 on tp 4: a rank has 2 query heads and shares one
  // key/value head.
  const Plan plan = ideal_plan(small_model(), {.tp = 4});
  const RankPlacement rank = PlacementTable(plan).of_rank(3);
  const auto [index, qkv] = rank.find(1, ParamSlot::kQkv);
  EXPECT_EQ(qkv.rows, 2 * 8 + 8 + 8);
  EXPECT_EQ(qkv.cols, 32);
  const Bucket& bucket = rank.buckets[static_cast<size_t>(index)];
  std::vector<std::pair<int64_t, int64_t>> rows;  // of query, key and value
  for (const Segment& s : bucket.segments) {
    if (s.offset >= qkv.offset && s.offset < qkv.offset + qkv.rows * qkv.cols)
      rows.emplace_back(s.row_begin, s.rows);
  }
  EXPECT_EQ(rows, (std::vector<std::pair<int64_t, int64_t>>{{3 * 16, 16}, {8, 8}, {8, 8}}));
  // The shared head's gradient is partial on both of its ranks.
  ASSERT_EQ(bucket.partial.size(), 2u);
  EXPECT_EQ(bucket.partial[0].copies, 2);
  EXPECT_EQ(bucket.partial[0].numel, 8 * 32);
}

TEST(Placement, NormsAreCopiesAndPartialUnderSequenceParallelismAlone) {
  for (const bool sp : {false, true}) {
    const PlacementTable table(ideal_plan(small_model(), {.tp = 2, .sp = sp}));
    for (const TensorPlacement& t : table.tensors()) {
      if (t.logical.role != ParamRole::kAttnNorm && t.logical.role != ParamRole::kFinalNorm)
        continue;
      EXPECT_EQ(t.tp_copies, 2);
      EXPECT_EQ(t.copies_are_partial, sp);
      EXPECT_EQ(t.tp_dim, std::nullopt);
    }
  }
}

TEST(Placement, TiedTableIsOnBothEndsAndSharedOnOneStage) {
  ModelSpec m = small_model();
  m.tied_embeddings = true;
  const RankPlacement one = PlacementTable(ideal_plan(m, {})).of_rank(0);
  EXPECT_EQ(one.find(5, ParamSlot::kLmHead).first, one.find(0, ParamSlot::kTable).first);
  EXPECT_EQ(one.find(5, ParamSlot::kLmHead).second.offset,
            one.find(0, ParamSlot::kTable).second.offset);
  const std::vector<RankPlacement> stages = stage_placements(ideal_plan(m, {.pp = 2}));
  const auto [first, table] = stages[0].find(0, ParamSlot::kTable);
  const auto [last, head] = stages[1].find(5, ParamSlot::kLmHead);
  EXPECT_TRUE(stages[0].buckets[static_cast<size_t>(first)].tied);
  EXPECT_TRUE(stages[1].buckets[static_cast<size_t>(last)].tied);
  EXPECT_EQ(table.rows, 61);
  EXPECT_EQ(head.rows, 61);
  EXPECT_EQ(stages[0].parameters() + stages[1].parameters(), parameter_count(m) + 61 * 32);
}

TEST(Placement, StagesSumToTheModel) {
  for (const int pp : {1, 2, 4}) {
    int64_t sum = 0;
    for (const RankPlacement& p : stage_placements(ideal_plan(small_model(), {.pp = pp})))
      sum += p.parameters();
    EXPECT_EQ(sum, parameter_count(small_model()));
  }
}

}  // namespace
}  // namespace meshwright
