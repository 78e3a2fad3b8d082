// SPDX-License-Identifier: Apache-2.0
#include "sim/mesh/mesh.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/mesh/shard.h"

namespace meshwright {
namespace {

Layout random_layout() {
  const auto degree = [] { return *rc::gen::inRange(1, 5); };
  return {.dp_replicate = degree(),
          .dp_shard = degree(),
          .tp = degree(),
          .cp = degree(),
          .pp = degree()};
}

/// A divisor of `n`.
int divisor(int n) {
  std::vector<int> all;
  for (int d = 1; d <= n; ++d) {
    if (n % d == 0) all.push_back(d);
  }
  return *rc::gen::elementOf(all);
}

/// The same with experts, over part of one ZeRO group, all of it, or several.
Layout random_expert_layout() {
  Layout l = random_layout();
  l.expert_tp = *rc::gen::arbitrary<bool>();
  const int spread = l.expert_tp ? 1 : l.tp;
  const int inner = l.shards() * spread;
  l.ep =
      *rc::gen::arbitrary<bool>() ? spread * divisor(l.shards()) : inner * divisor(l.dp_replicate);
  return l;
}

TEST(Mesh, CoordinateAndRankAreInverse) {
  EXPECT_TRUE(rc::check("rank(coord(r)) == r", [] {
    const Mesh mesh(random_layout());
    std::set<int> seen;
    for (int r = 0; r < mesh.world_size(); ++r) {
      RC_ASSERT(mesh.rank(mesh.coord(r)) == r);
      seen.insert(mesh.rank(mesh.coord(r)));
    }
    RC_ASSERT(static_cast<int>(seen.size()) == mesh.world_size());
  }));
}

TEST(Mesh, GroupsOfAKindPartitionTheRanks) {
  EXPECT_TRUE(rc::check("groups partition", [] {
    const Mesh mesh(random_layout());
    for (const GroupKind kind : {GroupKind::kTp,
                                 GroupKind::kDpReplicate,
                                 GroupKind::kDpShard,
                                 GroupKind::kDp,
                                 GroupKind::kWorld}) {
      std::map<std::vector<int>, int> members;
      for (int r = 0; r < mesh.world_size(); ++r) {
        const std::vector<int> group = mesh.group(kind, r);
        RC_ASSERT(std::is_sorted(group.begin(), group.end()));
        RC_ASSERT(std::count(group.begin(), group.end(), r) == 1);
        ++members[group];
      }
      for (const auto& [group, count] : members) RC_ASSERT(static_cast<int>(group.size()) == count);
    }
  }));
}

TEST(Mesh, ExpertGroupsPartitionTheRanksAndTheirProductIsTheStage) {
  EXPECT_TRUE(rc::check("expert groups", [] {
    const Layout l = random_expert_layout();
    const Mesh mesh(l);
    const size_t ep = static_cast<size_t>(l.ep);
    for (int r = 0; r < mesh.world_size(); ++r) {
      RC_ASSERT(mesh.group(GroupKind::kEp, r).size() == ep);
      RC_ASSERT(mesh.group(GroupKind::kExpertDp, r).size() ==
                static_cast<size_t>(l.expert_replicas()));
      RC_ASSERT(mesh.group(GroupKind::kExpertShard, r).size() ==
                static_cast<size_t>(l.expert_shards()));
      for (const GroupKind kind : {GroupKind::kEp,
                                   GroupKind::kExpertDp,
                                   GroupKind::kExpertShard,
                                   GroupKind::kExpertReplicate}) {
        const std::vector<int> group = mesh.group(kind, r);
        RC_ASSERT(std::count(group.begin(), group.end(), r) == 1);
        for (const int other : group) RC_ASSERT(mesh.group(kind, other) == group);
      }
      // Peers over expert data parallelism hold the same experts.
      for (const int other : mesh.group(GroupKind::kExpertDp, r))
        RC_ASSERT(mesh.index_in(GroupKind::kEp, other) == mesh.index_in(GroupKind::kEp, r));
    }
  }));
}

TEST(Mesh, ExpertsRunOverConsecutiveRanksWithDifferentTokens) {
  // tp 2, cp 2, dp_shard 2: ranks with tp 0 are 0 2 4 6.
  const Mesh split({.dp_shard = 2, .tp = 2, .cp = 2, .ep = 2});
  EXPECT_EQ(split.group(GroupKind::kCp, 0), (std::vector{0, 2}));
  EXPECT_EQ(split.group(GroupKind::kDpShard, 0), (std::vector{0, 2, 4, 6}));
  EXPECT_EQ(split.group(GroupKind::kEp, 4), (std::vector{4, 6}));
  EXPECT_EQ(split.group(GroupKind::kExpertDp, 2), (std::vector{2, 6}));
  const Mesh whole({.dp_shard = 2, .tp = 2, .cp = 2, .ep = 4, .expert_tp = false});
  EXPECT_EQ(whole.group(GroupKind::kEp, 5), (std::vector{4, 5, 6, 7}));
  EXPECT_EQ(whole.group(GroupKind::kExpertDp, 5), (std::vector{1, 5}));
}

TEST(Mesh, TpIsInnermostAndPpOutermost) {
  // pp2 dp_replicate2 dp_shard2 tp2: ((((pp * 2 + replicate) * 2 + shard) * 1 + cp) * 2 + tp).
  const Mesh mesh({.dp_replicate = 2, .dp_shard = 2, .tp = 2, .pp = 2});
  EXPECT_EQ(mesh.group(GroupKind::kTp, 0), (std::vector{0, 1}));
  EXPECT_EQ(mesh.group(GroupKind::kDpShard, 0), (std::vector{0, 2}));
  EXPECT_EQ(mesh.group(GroupKind::kDpReplicate, 0), (std::vector{0, 4}));
  EXPECT_EQ(mesh.group(GroupKind::kDp, 1), (std::vector{1, 3, 5, 7}));
  EXPECT_EQ(mesh.group(GroupKind::kTie, 3), (std::vector{3, 11}));
  EXPECT_EQ(mesh.rank_at_stage(5, 1), 13);
  EXPECT_EQ(mesh.coord(13), (MeshCoord{.pp = 1, .dp_replicate = 1, .dp_shard = 0, .tp = 1}));
}

TEST(Mesh, DpIndexNumbersTheRanksThatSeeOtherSamples) {
  const Mesh mesh({.dp_replicate = 2, .dp_shard = 3, .tp = 2, .pp = 2});
  for (int r = 0; r < mesh.world_size(); ++r) {
    const std::vector<int> group = mesh.group(GroupKind::kDp, r);
    EXPECT_EQ(group[static_cast<size_t>(mesh.dp_index(r))], r);
  }
}

TEST(Shard, RangesCoverOnceEvenWhereSomeAreEmpty) {
  EXPECT_TRUE(rc::check("cover exactly once", [] {
    const int64_t n = *rc::gen::inRange<int64_t>(0, 200);
    const int64_t parts = *rc::gen::inRange<int64_t>(1, 40);
    int64_t next = 0;
    for (int64_t i = 0; i < parts; ++i) {
      const ShardRange r = shard_range(n, parts, i);
      RC_ASSERT(r.begin == next);
      RC_ASSERT(r.size() >= 0);
      RC_ASSERT(r.size() <= shard_range(n, parts, 0).size());
      next = r.end;
    }
    RC_ASSERT(next == n);
  }));
}

TEST(Shard, LastPartsAreShorterOrEmpty) {
  // ceil(9 / 8) = 2: four parts of 2, one of 1, three empty.
  EXPECT_EQ(shard_range(9, 8, 3).size(), 2);
  EXPECT_EQ(shard_range(9, 8, 4).size(), 1);
  EXPECT_EQ(shard_range(9, 8, 5).size(), 0);
  EXPECT_EQ(shard_range(9, 8, 7).begin, 9);
}

}  // namespace
}  // namespace meshwright
