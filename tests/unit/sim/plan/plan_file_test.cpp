// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/plans.h"
#include "tests/unit/sim/temporary_file.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFile;

Plan sample_plan(int64_t micro_batch = 1) {
  auto problem =
      std::make_shared<Problem>(*testing::make_problem(testing::builtin_model("mistral-7b"),
                                                       testing::builtin_cluster("16xh100"),
                                                       4096,
                                                       64,
                                                       Precision::kBf16));
  problem->workload.tokens = 1.5e12;
  problem->cluster.price_usd_per_device_hour = 2.25;
  return testing::make_plan(problem,
                            {.dp_replicate = 2,
                             .dp_shard = 2,
                             .tp = 2,
                             .sp = true,
                             .pp = 2,
                             .micro_batch = micro_batch,
                             .zero_stage = 1,
                             .recompute = Recompute::kFull,
                             .schedule = ScheduleKind::kGpipe,
                             .stages = {15, 17}});
}

std::string sample_text() {
  PlanFile file{.plan = sample_plan(),
                .hash = plan_hash(sample_plan()),
                .predicted = StepReport{},
                .provenance = {"0.1.0", "2026-01-02", "abc"}};
  file.predicted->step_time = Seconds{1.25};
  (*file.predicted)[Term::kBubble] = Seconds{0.25};
  (*file.predicted)[MemoryTerm::kActivations] = Bytes{1e9};
  return to_json_text(file);
}

/// sample_text() with the first `from` replaced by `to`, read back: the error's message without the
/// path.
std::string message_of(const std::string& from, const std::string& to) {
  std::string text = sample_text();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const TemporaryFile file(text);
  const auto read = read_plan_file(file.path());
  return read ? "accepted" : to_string(read.error()).substr(file.path().size());
}

TEST(PlanFile, RoundTrip) {
  const TemporaryFile file(sample_text());
  const auto read = read_plan_file(file.path());
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  const Plan plan = sample_plan();
  EXPECT_EQ(read->plan.layout(), plan.layout());
  EXPECT_EQ(read->plan.model(), plan.model());
  EXPECT_EQ(read->plan.workload(), plan.workload());
  EXPECT_EQ(read->hash, plan_hash(plan));
  EXPECT_EQ(plan_hash(read->plan), read->hash);
  EXPECT_EQ(read->predicted->step_time.v, 1.25);
  EXPECT_EQ((*read->predicted)[Term::kBubble].v, 0.25);
  EXPECT_EQ((*read->predicted)[MemoryTerm::kActivations].v, 1e9);
  EXPECT_EQ(read->provenance.calibration_id, "abc");
  EXPECT_EQ(to_json_text(*read), sample_text());
}

TEST(PlanFile, HashIsOfTheDecisionAlone) {
  EXPECT_EQ(plan_hash(sample_plan()).size(), 16u);
  EXPECT_EQ(plan_hash(sample_plan()), plan_hash(sample_plan()));
  EXPECT_NE(plan_hash(sample_plan()), plan_hash(sample_plan(2)));
  EXPECT_EQ(message_of("2026-01-02", "2026-01-03"), "accepted");
}

TEST(PlanFile, EditedDecisionIsRefused) {
  const std::string m = message_of("\"micro_batch\": 1", "\"micro_batch\": 2");
  EXPECT_THAT(m, HasSubstr("#/plan_hash: plan_hash = " + plan_hash(sample_plan())));
  EXPECT_THAT(m, HasSubstr("): it was edited after planning; plan again"));
  EXPECT_THAT(message_of("\"rope_theta\": 10000.0", "\"rope_theta\": 20000.0"),
              HasSubstr("it was edited after planning"));
}

TEST(PlanFile, OtherSchemaVersionIsRefused) {
  EXPECT_EQ(message_of("\"schema_version\": 1", "\"schema_version\": 2"),
            "#/schema_version: schema_version = 2: must be from 1 to 1");
}

TEST(PlanFile, UnknownAndMissingKeysAreNamed) {
  EXPECT_THAT(message_of("\"provenance\"", "\"provenence\""),
              HasSubstr("provenance = missing: is required"));
  EXPECT_THAT(message_of("\"schema_version\": 1", "\"schema_version\": 1, \"note\": \"mine\""),
              HasSubstr("#/note: note = \"mine\": is not a known key"));
  EXPECT_THAT(message_of("\"bubble_s\"", "\"buble_s\""), HasSubstr("bubble_s = missing"));
}

TEST(PlanFile, TruncatedJsonNamesLineAndColumn) {
  const std::string text = sample_text().substr(0, sample_text().find("\"cluster\"") + 9);
  const TemporaryFile file(text);
  const auto read = read_plan_file(file.path());
  ASSERT_FALSE(read.has_value());
  // Line 3 of the file is 4 blanks and "cluster" with its quotes: the last of 13 characters.
  EXPECT_THAT(to_string(read.error()), HasSubstr(": line 3, column 13: is not valid JSON"));
  const TemporaryFile empty;
  EXPECT_THAT(to_string(read_plan_file(empty.path()).error()), HasSubstr("line 1, column 1"));
}

TEST(PlanFile, MissingFileAndUnwritablePath) {
  EXPECT_EQ(to_string(read_plan_file("no/such/plan.json").error()),
            "no/such/plan.json: no such file; check the path");
  const PlanFile file{
      .plan = sample_plan(), .hash = "", .predicted = std::nullopt, .provenance = {}};
  EXPECT_EQ(write_plan_file("no/such/folder/plan.json", file).error().rule, "cannot be written");
}

TEST(PlanFile, WrittenInOnePiece) {
  const TemporaryFile old("old");
  const PlanFile file{.plan = sample_plan(),
                      .hash = plan_hash(sample_plan()),
                      .predicted = std::nullopt,
                      .provenance = {"0.1.0", "today", ""}};
  ASSERT_TRUE(write_plan_file(old.path(), file).has_value());
  EXPECT_FALSE(read_plan_file(old.path()).value().predicted.has_value());
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(old.folder()))
    ++files;
  EXPECT_EQ(files, 1);  // no temporary is left
}

}  // namespace
}  // namespace meshwright
