// SPDX-License-Identifier: Apache-2.0
#include "sim/launch/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

namespace meshwright {
namespace {

using std::chrono::milliseconds;
using ::testing::StartsWith;

constexpr int exited(int code) { return code << 8; }
constexpr int killed(int number) { return number; }

RankRecord ended(int rank, int status, int at_ms) {
  return {.rank = rank, .wait_status = status, .ended_at = milliseconds(at_ms)};
}

RankRecord said_failed(int rank, int64_t t_ns, int at_ms, int code = 70) {
  RankRecord r = ended(rank, exited(code), at_ms);
  r.failed = FailedEvent{"peer_lost", std::nullopt, std::nullopt, "no answer"};
  r.failed_t_ns = t_ns;
  r.failed_at = milliseconds(at_ms);
  return r;
}

RankRecord ended_by_us(int rank) {
  RankRecord r = ended(rank, killed(SIGTERM), 2000);
  r.ended_by_launcher = true;
  return r;
}

TEST(Diagnosis, NoFailureIsSuccess) {
  const auto outcome = diagnose({ended(0, exited(0), 1), ended(1, exited(0), 2)});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(outcome.message, "");
  EXPECT_EQ(outcome.failed_rank, std::nullopt);
  ASSERT_EQ(outcome.ranks.size(), 2U);
  EXPECT_EQ(outcome.ranks[1].exit_code, 0);
  EXPECT_EQ(outcome.ranks[1].signal, std::nullopt);
}

TEST(Diagnosis, AKilledRankIsTheCauseEvenIfOthersSpokeFirst) {
  RankRecord victim = ended(2, killed(SIGKILL), 30);
  victim.last_step = 17;
  const auto outcome =
      diagnose({said_failed(0, 5, 10), ended(1, exited(1), 5), victim, ended_by_us(3)});
  EXPECT_EQ(outcome.exit_status, 70);
  EXPECT_EQ(outcome.failed_rank, 2);
  EXPECT_EQ(outcome.message, "rank 2 was killed by signal 9 (SIGKILL) at step 17");
  EXPECT_EQ(outcome.ranks[2].signal, SIGKILL);
  EXPECT_TRUE(outcome.ranks[3].ended_by_launcher);
}

TEST(Diagnosis, TheEarliestFailedEventIsTheCause) {
  const auto outcome =
      diagnose({said_failed(0, 900, 10), said_failed(1, 100, 20), ended(2, exited(3), 1)});
  EXPECT_EQ(outcome.failed_rank, 1);
  EXPECT_EQ(outcome.exit_status, 70);
  EXPECT_EQ(outcome.message, "rank 1 failed (peer_lost): no answer");
}

TEST(Diagnosis, TheFirstNonZeroExitIsTheCauseOtherwise) {
  const auto outcome =
      diagnose({ended(0, exited(5), 20), ended(1, exited(6), 10), ended(2, exited(0), 1)});
  EXPECT_EQ(outcome.failed_rank, 1);
  EXPECT_EQ(outcome.message, "rank 1 exited with status 6");
}

TEST(Diagnosis, AnAbortIsWeighedByItsTime) {
  // A rank that aborts at once made the others fail ...
  EXPECT_EQ(diagnose({said_failed(0, 1, 10), ended(1, killed(SIGABRT), 40)}).failed_rank, 1);
  // ... one that aborts long after a failure did so because of it.
  EXPECT_EQ(diagnose({said_failed(0, 1, 10), ended(1, killed(SIGABRT), 400)}).failed_rank, 0);
  EXPECT_EQ(diagnose({ended(0, killed(SIGABRT), 1), ended(1, killed(SIGSEGV), 5)}).failed_rank, 1);
}

TEST(Diagnosis, BadInputAndNegativeAnswersArePassedOn) {
  const auto bad = diagnose({said_failed(0, 1, 1, 2), ended_by_us(1)});
  EXPECT_EQ(bad.exit_status, 2);
  EXPECT_EQ(bad.message, "rank 0 failed (peer_lost): no answer");
  EXPECT_EQ(diagnose({ended(0, exited(75), 1), ended_by_us(1)}).exit_status, 75);

  const auto negative = diagnose({ended(0, exited(1), 1), ended(1, exited(1), 2)});
  EXPECT_EQ(negative.exit_status, 1);
  EXPECT_EQ(negative.failed_rank, std::nullopt);
  EXPECT_EQ(diagnose({ended(0, exited(1), 1), ended(1, exited(0), 2)}).exit_status, 70);
  EXPECT_EQ(diagnose({ended(0, exited(1), 1), ended_by_us(1)}).exit_status, 70);
}

TEST(Diagnosis, TheMessageSaysWhereAndShowsStderr) {
  RankRecord r = said_failed(0, 1, 1);
  r.failed->step = 4;
  r.failed->action = "F(s0,m1)";
  r.stderr_tail = {"one", "two"};
  EXPECT_EQ(diagnose({r}).message,
            "rank 0 failed (peer_lost) at step 4 in F(s0,m1): no answer\n"
            "  its last lines on stderr:\n    one\n    two");
  // A rank that reports no steps itself is placed by those that do.
  RankRecord speaker = ended_by_us(0);
  speaker.last_step = 8;
  EXPECT_EQ(diagnose({speaker, ended(1, killed(SIGSEGV), 1)}).message,
            "rank 1 was killed by signal 11 (SIGSEGV) at step 8");
}

}  // namespace
}  // namespace meshwright
