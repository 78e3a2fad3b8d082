// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/sim/plans.h"
#include "tests/unit/sim/temporary_file.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFile;

Calibration sample(const std::string& machine, const std::string& date) {
  Calibration c = testing::ideal_calibration();
  c.machine_id = machine;
  c.cpu_model = "a CPU";
  c.cores = 2;
  c.date = date;
  c.tool_version = "0.1.0";
  c.stream = {{.kind = OpKind::kRmsNorm, .overhead_s = 1.5e-6, .bytes_per_s = 1.25e10}};
  c.collectives = {
      {.op = CommOp::kAllGather, .group_size = 4, .alpha_s = 2e-4, .beta_s_per_byte = 1.25e-9}};
  c.adamw_params_per_s = 5e8;
  c.host_per_operator_s = 1e-6;
  c.host_per_action_s = 2e-6;
  c.oversubscription = 1.1;
  return c;
}

TEST(Calibration, WrittenAndReadBack) {
  const TemporaryFile file;
  const Calibration c = sample("here", "2026-01-02");
  ASSERT_TRUE(write_calibration(file.path(), c).has_value());
  const Calibration back = read_calibration(file.path()).value();
  EXPECT_EQ(back.machine_id, "here");
  EXPECT_EQ(back.cores, 2);
  EXPECT_EQ(back.date, "2026-01-02");
  ASSERT_EQ(back.matmul.size(), 3u);
  EXPECT_EQ(back.matmul[1].kind, OpKind::kLinearBackwardInput);
  EXPECT_EQ(back.matmul[1].k, 1000);
  EXPECT_EQ(back.matmul[1].seconds, 2.0);
  EXPECT_EQ(back.attention[0].backward_flop_per_s, 1e9);
  EXPECT_EQ(back.stream[0].kind, OpKind::kRmsNorm);
  EXPECT_EQ(back.stream[0].bytes_per_s, 1.25e10);
  EXPECT_EQ(back.collectives[0].op, CommOp::kAllGather);
  EXPECT_EQ(back.collectives[0].beta_s_per_byte, 1.25e-9);
  EXPECT_EQ(back.oversubscription, 1.1);
  EXPECT_EQ(back.id.size(), 16u);
  // The id is the content's.
  const TemporaryFile other;
  Calibration changed = c;
  changed.adamw_params_per_s = 6e8;
  ASSERT_TRUE(write_calibration(other.path(), changed).has_value());
  EXPECT_NE(read_calibration(other.path()).value().id, back.id);
}

TEST(Calibration, OfAnotherMachineIsRefusedUnlessForced) {
  const TemporaryFile file;
  ASSERT_TRUE(write_calibration(file.path(), sample("there", "2026-01-02")).has_value());
  const auto refused = find_calibration(file.path(), "", "here", false);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "machine_id");
  EXPECT_EQ(refused.error().value, "there");
  EXPECT_EQ(refused.error().rule, "was measured on another machine (a CPU); this one is here");
  EXPECT_THAT(refused.error().remedy, HasSubstr("--force"));
  EXPECT_EQ(find_calibration(file.path(), "", "here", true).value()->machine_id, "there");
}

TEST(Calibration, NewestOfThisMachineIsTakenByDefault) {
  const TemporaryFile any;
  const std::string folder = any.folder();
  ASSERT_TRUE(write_calibration(folder + "/a.json", sample("here", "2026-01-02")).has_value());
  ASSERT_TRUE(write_calibration(folder + "/b.json", sample("here", "2026-03-04")).has_value());
  ASSERT_TRUE(write_calibration(folder + "/c.json", sample("there", "2026-05-06")).has_value());
  EXPECT_EQ(find_calibration("", folder, "here", false).value()->date, "2026-03-04");
  EXPECT_FALSE(find_calibration("", folder, "nowhere", false).value().has_value());
  EXPECT_FALSE(find_calibration("", folder + "/none", "here", false).value().has_value());
}

TEST(Calibration, WithoutASampleOfEachMatmulIsRefused) {
  const TemporaryFile file;
  Calibration c = sample("here", "2026-01-02");
  c.matmul.pop_back();
  ASSERT_TRUE(write_calibration(file.path(), c).has_value());
  const auto read = read_calibration(file.path());
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(to_string(read.error()), HasSubstr("weight gradient; calibrate again"));
  c.matmul.clear();
  ASSERT_TRUE(write_calibration(file.path(), c).has_value());
  EXPECT_EQ(read_calibration(file.path()).error().rule, "must not be empty");
}

TEST(Calibration, WrongValuesAndKeysAreRefused) {
  const TemporaryFile file;
  Calibration c = sample("here", "2026-01-02");
  c.oversubscription = 0.5;
  ASSERT_TRUE(write_calibration(file.path(), c).has_value());
  EXPECT_THAT(to_string(read_calibration(file.path()).error()),
              HasSubstr("oversubscription = 0.5: must be from 1 to 10"));
  EXPECT_FALSE(read_calibration(file.path() + ".none").has_value());
}

}  // namespace
}  // namespace meshwright
