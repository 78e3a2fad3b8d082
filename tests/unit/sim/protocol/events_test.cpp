// SPDX-License-Identifier: Apache-2.0
#include "sim/protocol/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace meshwright {
namespace {

using ::testing::HasSubstr;

std::string error(std::string_view line) {
  const auto event = parse_event(line);
  return event ? "" : to_string(event.error());
}

Event reparsed(const Event& event) {
  const std::string line = to_json_line(event);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = parse_event(line);
  EXPECT_TRUE(parsed) << line << ": " << to_string(parsed.error());
  EXPECT_TRUE(parsed->has_value()) << line;
  return **parsed;
}

TEST(Events, TheLineIsTheContracts) {
  EXPECT_EQ(
      to_json_line(
          {.t_ns = 123, .rank = 2, .body = StepEvent{.step = 7, .loss = 2.5, .tokens = 4096}}),
      R"({"v":1,"type":"step","t_ns":123,"rank":2,"step":7,"loss":2.5,"tokens":4096})");
  EXPECT_EQ(to_json_line({.body = StartedEvent{"abc", 4}}),
            R"({"v":1,"type":"started","t_ns":0,"rank":0,"plan_hash":"abc","world":4})");
  EXPECT_EQ(
      to_json_line({.body = FinishedEvent{9, "{ \"step_time_s\": 0.5 }"}}),
      R"({"v":1,"type":"finished","t_ns":0,"rank":0,"steps":9,"report":{"step_time_s":0.5}})");
}

TEST(Events, EveryTypeSurvivesTheRoundTrip) {
  const Event events[] = {
      {1, 0, StartedEvent{"0f", 8}},
      {std::numeric_limits<int64_t>::max(), 7, StepEvent{.step = 3}},
      {2,
       1,
       StepEvent{.step = int64_t{1} << 60,
                 .loss = 0.1,
                 .grad_norm = 5e-324,
                 .lr = 1.7976931348623157e308,
                 .tokens = 0,
                 .step_time_s = 1.0 / 3,
                 .peak_memory_bytes = 12}},
      {3, 0, WarningEvent{"code", "line one\nline \"two\"\t\x01 \xc3\xa9"}},
      {4, 0, CheckpointEvent{5, "/out/a b", 1.5}},
      {4, 0, CheckpointEvent{5, "", std::nullopt}},
      {5, 3, FailedEvent{"out_of_memory", 7, "F(s0,m1)", "why"}},
      {5, 3, FailedEvent{"bad_input", std::nullopt, std::nullopt, ""}},
      {6, 0, FinishedEvent{10, R"({"a":[1,2.5]})"}},
      {6, 0, FinishedEvent{0, std::nullopt}},
  };
  for (const Event& event : events) EXPECT_EQ(reparsed(event), event) << to_json_line(event);
}

TEST(Events, NonFiniteNumbersSurvive) {
  const double inf = std::numeric_limits<double>::infinity();
  const Event event{0, 0, StepEvent{.step = 1, .loss = std::nan(""), .grad_norm = inf, .lr = -inf}};
  EXPECT_THAT(to_json_line(event), HasSubstr(R"("loss":null,"loss_nonfinite":"nan")"));
  const auto step = std::get<StepEvent>(reparsed(event).body);
  EXPECT_TRUE(step.loss && std::isnan(*step.loss));
  EXPECT_EQ(step.grad_norm, inf);
  EXPECT_EQ(step.lr, -inf);
  EXPECT_EQ(step.step_time_s, std::nullopt);
  EXPECT_THAT(error(R"({"v":1,"type":"step","t_ns":0,"rank":0,"step":1,"loss_nonfinite":"x"})"),
              HasSubstr("loss_nonfinite = \"x\""));
}

TEST(Events, NullIsUnknown) {
  const auto event = parse_event(R"({"v":1,"type":"step","t_ns":0,"rank":0,"step":1,"loss":null})");
  ASSERT_TRUE(event);
  EXPECT_EQ(std::get<StepEvent>((*event)->body).loss, std::nullopt);
}

TEST(Events, UnknownTypesAndKeysAreIgnored) {
  const auto type = parse_event(R"({"v":1,"type":"heartbeat","t_ns":"?"})");
  ASSERT_TRUE(type);
  EXPECT_FALSE(type->has_value());
  const auto key =
      parse_event("{\"v\":1,\"type\":\"step\",\"t_ns\":0,\"rank\":0,\"step\":1,\"new\":{}}\r\n");
  ASSERT_TRUE(key);
  EXPECT_TRUE(key->has_value());
}

TEST(Events, AnotherVersionIsAnError) {
  EXPECT_THAT(error(R"({"v":2,"type":"heartbeat"})"), HasSubstr("v = 2"));
  EXPECT_THAT(error(R"({"v":"1.0","type":"heartbeat"})"), HasSubstr("v = \"1.0\""));
  EXPECT_THAT(error(R"({"v":1.5,"type":"heartbeat"})"), HasSubstr("v = 1.5"));
  EXPECT_THAT(error(R"({"v":1.0,"type":"heartbeat"})"), HasSubstr("v = 1.0"));
  EXPECT_THAT(error(R"({"type":"heartbeat"})"), HasSubstr("v: is missing"));
}

TEST(Events, MalformedLinesAreErrors) {
  EXPECT_THAT(error(""), HasSubstr("column = 1"));
  EXPECT_THAT(error(R"({"v":1,x)"), HasSubstr("column = 8"));
  EXPECT_THAT(error("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error(R"({"v":1})"), HasSubstr("type"));
  EXPECT_THAT(error(R"({"v":1,"type":"step","t_ns":0,"rank":0})"), HasSubstr("step: is missing"));
  EXPECT_THAT(error("{\"v\":1,\"type\":\"\xff\"}"), HasSubstr("column"));
  EXPECT_THAT(error(std::string(300'000, '[')), HasSubstr("column"));
  EXPECT_THAT(error(R"({"v":1,"type":"step","t_ns":0,"rank":0,"step":1e999})"),
              HasSubstr("column"));
}

TEST(Events, FieldsAreChecked) {
  auto step = [](const std::string& rest) {
    return error(R"({"v":1,"type":"step","t_ns":0,)" + rest + "}");
  };
  EXPECT_EQ(step(R"("rank":0,"step":1)"), "");
  EXPECT_THAT(step(R"("rank":-1,"step":1)"), HasSubstr("rank = -1: must be from 0 to 2147483647"));
  EXPECT_THAT(step(R"("rank":2147483648,"step":1)"), HasSubstr("rank = 2147483648"));
  EXPECT_THAT(step(R"("rank":0,"step":9223372036854775808)"), HasSubstr("must be from 0"));
  EXPECT_THAT(step(R"("rank":0,"step":1.0)"), HasSubstr("step = 1.0: must be an integer"));
  EXPECT_THAT(step(R"("rank":0,"step":1,"loss":"2")"), HasSubstr("loss = \"2\": must be a number"));
  EXPECT_THAT(error(R"({"v":1,"type":"warning","t_ns":0,"rank":0,"code":1,"message":""})"),
              HasSubstr("code = 1: must be a string"));
  EXPECT_THAT(error(R"({"v":1,"type":"started","t_ns":0,"rank":0,"plan_hash":"","world":0})"),
              HasSubstr("world = 0"));
  EXPECT_THAT(error(R"({"v":1,"type":"finished","t_ns":0,"rank":0,"steps":1,"report":[]})"),
              HasSubstr("report"));
}

TEST(Events, BytesThatAreNoTextDoNotBreakTheLine) {
  const auto event = reparsed({.body = WarningEvent{"code",
                                                    "a\xff"
                                                    "b"}});
  EXPECT_EQ(std::get<WarningEvent>(event.body).message,
            "a\xef\xbf\xbd"
            "b");
}

TEST(EventsDeathTest, AReportThatIsNoObjectAborts) {
  EXPECT_DEATH((void)to_json_line({.body = FinishedEvent{1, "/out/report.json"}}), "JSON object");
}

}  // namespace
}  // namespace meshwright
