// SPDX-License-Identifier: Apache-2.0
#include "sim/report/step_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/report/rank_report.h"
#include "sim/report/traffic.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

Span span(ActionKind kind, double start, double end, double compute = 0, double comm = 0) {
  return {.action = {.kind = kind, .micro_batch = 0},
          .start_s = start,
          .end_s = end,
          .compute_s = compute,
          .comm_s = comm};
}

Span transfer(ActionKind kind, Direction d, double start, double end) {
  Span s = span(kind, start, end);
  s.action.direction = d;
  // Forwards from stage 0 to 1, backwards from 1 to 0.
  const bool first = (kind == ActionKind::kSend) == (d == Direction::kForward);
  s.action.virtual_stage = first ? 0 : 1;
  s.action.peer = s.action.peer_stage = first ? 1 : 0;
  return s;
}

/// Two stages, one micro-batch. Stage 0: forward 0-4, send, waits 4-12 for the gradient, backward
/// 12-20, norm 20-22, optimizer 22-23. Stage 1 waits for the input until 5 (sent at 4) and sends
/// the gradient at 11.
Timeline two_stages() {
  using enum ActionKind;
  RankTimeline a{.rank = 0, .step_start_s = 0, .step_end_s = 24, .spans = {}};
  a.spans = {span(kForward, 0, 4, 3, 0.5),
             transfer(kSend, Direction::kForward, 4, 4),
             transfer(kRecv, Direction::kBackward, 4, 12),
             span(kBackward, 12, 20, 7, 0.75),
             span(kGradNorm, 20, 22),
             span(kOptimizer, 22, 23)};
  RankTimeline b{.rank = 1, .step_start_s = 0, .step_end_s = 23, .spans = {}};
  b.spans = {transfer(kRecv, Direction::kForward, 0, 5),
             span(kForward, 5, 8, 3),
             span(kBackward, 8, 11, 3),
             transfer(kSend, Direction::kBackward, 11, 11.5),
             span(kGradNorm, 11.5, 22),
             span(kOptimizer, 22, 23)};
  return {.ranks = {a, b}};
}

const Mesh kMesh(Layout{.pp = 2});

double sum(const StepReport& r) {
  double total = 0;
  for (const Seconds t : r.terms) total += t.v;
  return total;
}

TEST(StepReport, WaitForALatePeerIsBubbleTheTransferIsExposed) {
  const StepReport first = terms_of_rank(two_stages(), kMesh, 0);
  EXPECT_DOUBLE_EQ(first.step_time.v, 24);
  EXPECT_DOUBLE_EQ(first[Term::kCompute].v, 10);
  EXPECT_DOUBLE_EQ(first[Term::kExposedTp].v, 1.25);
  EXPECT_DOUBLE_EQ(first[Term::kBubble].v, 7);     // 4 to 11, when the peer sent
  EXPECT_DOUBLE_EQ(first[Term::kExposedPp].v, 1);  // 11 to 12
  EXPECT_DOUBLE_EQ(first[Term::kOther].v, 2);      // the norm: this rank came last
  EXPECT_DOUBLE_EQ(first[Term::kOptimizer].v, 1);
  EXPECT_DOUBLE_EQ(first[Term::kHost].v,
                   0.5 + 0.25 + 1);  // inside forward and backward, and uncovered at the end
  EXPECT_DOUBLE_EQ(sum(first), 24);

  const StepReport second = terms_of_rank(two_stages(), kMesh, 1);
  EXPECT_DOUBLE_EQ(second[Term::kBubble].v,
                   4 + 8.5);  // until 4 for the input, 11.5 to 20 for the norm
  EXPECT_DOUBLE_EQ(second[Term::kExposedPp].v, 1 + 0.5);
  EXPECT_DOUBLE_EQ(second[Term::kOther].v, 2);
  EXPECT_DOUBLE_EQ(sum(second), 23);
}

TEST(StepReport, SlowestRankIsTheOneWithTheLongestStep) {
  EXPECT_EQ(terms_of_slowest_rank(two_stages(), kMesh).step_time.v, 24);
  Timeline t = two_stages();
  t.ranks[1].step_start_s = -5;
  EXPECT_EQ(terms_of_slowest_rank(t, kMesh).step_time.v, 28);
}

TEST(StepReport, ReductionsGathersAndCopies) {
  using enum ActionKind;
  RankTimeline r{.rank = 0, .step_start_s = 1, .step_end_s = 11, .spans = {}};
  r.spans = {span(kRecompute, 1, 3, 2),
             span(kSumCopies, 3, 4),
             span(kReduce, 4, 4),
             span(kWaitReduce, 4, 6),
             span(kGather, 6, 6),
             span(kWaitGather, 6, 9)};
  const StepReport report = terms_of_rank({.ranks = {r}}, Mesh(Layout{}), 0);
  EXPECT_DOUBLE_EQ(report[Term::kRecompute].v, 2);
  EXPECT_DOUBLE_EQ(report[Term::kExposedTp].v, 1);
  EXPECT_DOUBLE_EQ(report[Term::kExposedDp].v, 5);
  EXPECT_DOUBLE_EQ(report[Term::kHost].v, 2);
}

TEST(StepReport, JsonRoundTrip) {
  StepReport r;
  r.step_time = Seconds{1.0 / 3};
  r.peak_memory = Bytes{123456789012};
  for (size_t i = 0; i < r.terms.size(); ++i) r.terms[i] = Seconds{0.1 * static_cast<double>(i)};
  for (size_t i = 0; i < r.memory.size(); ++i) r.memory[i] = Bytes{1e9 * static_cast<double>(i)};
  const StepReport back = parse_step_report(to_json_text(r), "report.json").value();
  EXPECT_EQ(back.step_time, r.step_time);
  EXPECT_EQ(back.peak_memory, r.peak_memory);
  EXPECT_EQ(back.terms, r.terms);
  EXPECT_EQ(back.memory, r.memory);
}

TEST(StepReport, BrokenJsonIsNamed) {
  std::string text = to_json_text(StepReport{});
  text.replace(text.find("\"bubble_s\": 0.0"), 15, "\"bubble_s\": \"a\"");
  EXPECT_THAT(to_string(parse_step_report(text, "report.json").error()),
              HasSubstr("report.json#/terms/bubble_s: bubble_s = \"a\": must be a number"));
  EXPECT_FALSE(parse_step_report("", "report.json").has_value());
}

TEST(RankReport, JsonRoundTripKeepsALossThatIsNotFinite) {
  RankReport r{.rank = 1,
               .plan_hash = "0123456789abcdef",
               .loss = {2.5, std::nan("")},
               .step_time_s = {0.5, 0.25},
               .median_step = 1,
               .peak_memory = Bytes{1e9},
               .memory = {},
               .timeline = two_stages().ranks[1]};
  r.memory[0] = Bytes{5e8};
  const RankReport back = parse_rank_report(to_json_text(r), "rank1.json").value();
  EXPECT_EQ(back.rank, 1);
  EXPECT_EQ(back.plan_hash, r.plan_hash);
  EXPECT_EQ(back.loss[0], 2.5);
  EXPECT_TRUE(std::isnan(back.loss[1]));
  EXPECT_EQ(back.step_time_s, r.step_time_s);
  EXPECT_EQ(back.memory, r.memory);
  ASSERT_EQ(back.timeline.spans.size(), r.timeline.spans.size());
  for (size_t i = 0; i < r.timeline.spans.size(); ++i) {
    EXPECT_EQ(back.timeline.spans[i].action, r.timeline.spans[i].action);
    EXPECT_EQ(back.timeline.spans[i].end_s, r.timeline.spans[i].end_s);
    EXPECT_EQ(back.timeline.spans[i].compute_s, r.timeline.spans[i].compute_s);
  }
}

TEST(RankReport, EveryKindOfActionReadsBack) {
  RankReport r;
  for (int kind = 0; kind < kNumActionKinds; ++kind)
    r.timeline.spans.push_back(span(static_cast<ActionKind>(kind), 0, 1));
  const RankReport back = parse_rank_report(to_json_text(r), "r.json").value();
  ASSERT_EQ(back.timeline.spans.size(), static_cast<size_t>(kNumActionKinds));
  EXPECT_EQ(back.timeline.spans.back().action.kind, ActionKind::kRelease);
}

TEST(RankReport, WrongSpansAreRefused) {
  RankReport r;
  r.timeline.spans = {span(ActionKind::kForward, 0, 1)};
  std::string text = to_json_text(r);
  text.replace(text.find("\"spans\":[[0"), 11, "\"spans\":[[99");
  EXPECT_THAT(to_string(parse_rank_report(text, "r.json").error()), HasSubstr("is not a span"));
}

TEST(RankReport, MeasuredReportTakesTimeOfTheSlowestAndMemoryOfTheFullest) {
  std::vector<RankReport> ranks(2);
  for (size_t i = 0; i < 2; ++i) {
    ranks[i].rank = static_cast<int>(i);
    ranks[i].timeline = two_stages().ranks[i];
    ranks[i].peak_memory = Bytes{i == 0 ? 10.0 : 20.0};
    ranks[i].memory[0] = Bytes{i == 0 ? 1.0 : 2.0};
  }
  const StepReport r = measured_report(ranks, kMesh);
  EXPECT_EQ(r.step_time.v, 24);
  EXPECT_EQ(r.peak_memory.v, 20);
  EXPECT_EQ(r[MemoryTerm::kWeights].v, 2);
}

TEST(Timeline, ChromeTraceParses) {
  const auto json = nlohmann::json::parse(to_chrome_trace(two_stages(), kMesh));
  int names = 0;
  int complete = 0;
  for (const auto& e : json.at("traceEvents")) {
    if (e.at("ph") == "M") {
      EXPECT_EQ(e.at("args").at("name"), names == 0 ? "rank 0 (stage 0)" : "rank 1 (stage 1)");
      ++names;
    } else {
      EXPECT_EQ(e.at("ph"), "X");
      EXPECT_GE(e.at("dur").get<double>(), 0);
      EXPECT_GE(e.at("ts").get<double>(), 0);
      ++complete;
    }
  }
  EXPECT_EQ(names, 2);
  EXPECT_EQ(complete, 12);
}

TEST(Traffic, CountsWhatTheFormulasSay) {
  // TP without SP: 2 all-reduces of [T, D] per layer forward and 2 backward, one of the embedding;
  // the head adds the logit maximum [T], the sums [2, T] and its input's gradient [T, D].
  const Plan plan =
      testing::ideal_plan(testing::small_model(), {.dp_replicate = 2, .tp = 2, .micro_batch = 2});
  const std::vector<AxisTraffic> traffic = step_traffic(plan, 0);
  ASSERT_EQ(traffic.size(), 2u);
  const double tokens = 32;
  const double activation = 4 * tokens * 32;
  EXPECT_EQ(traffic[0].axis, "tp");
  EXPECT_EQ(traffic[0].operations, 2 * (4 * 4 + 1 + 3));
  EXPECT_EQ(traffic[0].payload.v, 2 * (activation * (4 * 4 + 1 + 1) + 4 * tokens * 3));
  EXPECT_EQ(traffic[1].axis, "dp");
  EXPECT_EQ(traffic[1].operations, 6);  // one bucket a block
  EXPECT_EQ(traffic[1].payload.v,
            4.0 * static_cast<double>(PlacementTable(plan).of_rank(0).padded_parameters()));
  const auto pipeline = step_traffic(testing::ideal_plan(testing::small_model(), {.pp = 4}), 1);
  ASSERT_EQ(pipeline.size(), 1u);
  EXPECT_EQ(pipeline[0].operations, 8 * 4);  // in and out, both ways, of eight micro-batches
  EXPECT_EQ(pipeline[0].payload.v, 8 * 4 * 4.0 * 16 * 32);
}

}  // namespace
}  // namespace meshwright
