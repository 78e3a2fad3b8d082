// SPDX-License-Identifier: Apache-2.0
// Workers are /bin/sh scripts, so that each way to misbehave is a line that one can read.
#include "sim/launch/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sim/launch/line_splitter.h"

namespace meshwright {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "launcher_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// A job of `world_size` ranks that run `script`; $F is a folder for their files.
  LaunchOptions job(int world_size, const std::string& script) {
    return {.program = "/bin/sh",
            .arguments =
                {"-c",
                 "step() { echo \"{\\\"v\\\":1,\\\"type\\\":\\\"step\\\",\\\"t_ns\\\":1,"
                 "\\\"rank\\\":$RANK,\\\"step\\\":$1}\"; }\n"
                 "failed() { echo \"{\\\"v\\\":1,\\\"type\\\":\\\"failed\\\",\\\"t_ns\\\":$1,"
                 "\\\"rank\\\":$RANK,\\\"code\\\":\\\"$2\\\",\\\"message\\\":\\\"$3\\\"}\"; }\n" +
                     script},
            .world_size = world_size,
            .environment = {{"F", folder_}},
            .on_event = [this](const Event& e) { events_.push_back(e); },
            .on_stderr =
                [this](int rank, std::string_view line) {
                  stderr_.push_back(std::to_string(rank) + ":" + std::string(line));
                },
            .kill_grace = 300ms};
  }

  LaunchOutcome run(int world_size, const std::string& script) {
    return launch_and_supervise(job(world_size, script));
  }

  std::string file(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }

  std::string folder_;
  std::vector<Event> events_;
  std::vector<std::string> stderr_;
};

/// True while the process runs; a zombie that nobody reaps (its new parent's affair) is gone.
bool alive(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const size_t end = text.rfind(')');
  return end != std::string::npos && text.size() > end + 2 && text[end + 2] != 'Z';
}

template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = 5s) {
  const auto deadline = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

size_t open_descriptors() {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST_F(LauncherTest, EveryRankGetsItsEnvironment) {
  auto options = job(3,
                     "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $OMP_NUM_THREADS $EXTRA "
                     "$MESHWRIGHT_STORE \"$1\" >$F/env$RANK\n"
                     "touch ${MESHWRIGHT_STORE#file:}; readlink /proc/self/fd/0 >$F/stdin$RANK\n"
                     "ls /proc/self/fd | wc -l >$F/fds$RANK");
  options.environment.emplace_back("EXTRA", "a=b");
  options.environment.emplace_back("RANK", "99");  // ours wins
  options.arguments.insert(options.arguments.end(), {"sh", "an argument"});
  const int leaked = ::dup(2);  // a descriptor without O_CLOEXEC must not reach the workers
  const auto outcome = launch_and_supervise(options);
  ::close(leaked);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.message;
  EXPECT_EQ(outcome.message, "");
  ASSERT_EQ(outcome.ranks.size(), 3U);
  std::string store;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string r = std::to_string(rank);
    EXPECT_EQ(outcome.ranks[static_cast<size_t>(rank)].exit_code, 0);
    std::istringstream words(file("env" + r));
    std::string word;
    for (const std::string& expected :
         {r, r, std::string("3"), std::string("3"), std::string("1"), std::string("a=b")}) {
      words >> word;
      EXPECT_EQ(word, expected);
    }
    words >> word;
    EXPECT_THAT(word, StartsWith("file:/"));
    EXPECT_TRUE(rank == 0 || word == store) << word;
    store = word;
    std::getline(words >> std::ws, word);
    EXPECT_EQ(word, "an argument");
    EXPECT_EQ(file("stdin" + r), "/dev/null\n");
    EXPECT_LE(std::stoi(file("fds" + r)), 4);  // 0, 1, 2 and ls's own
  }
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(store.substr(5)).parent_path()));
}

TEST_F(LauncherTest, EventsStreamWhileTheJobRuns) {
  // The worker goes on only once its first event was seen: a launcher that collects would hang it.
  auto options = job(1,
                     "step 1; i=0; while [ ! -e $F/seen ]; do sleep 0.01; i=$((i+1)); "
                     "[ $i -gt 500 ] && exit 9; done; printf '{\"v\":1,\"type\":\"st'; sleep 0.05; "
                     "printf 'ep\",\"t_ns\":5,\"rank\":0,\"step\":2}'");
  options.on_event = [this](const Event& e) {
    events_.push_back(e);
    std::ofstream(folder_ + "/seen") << "x";
  };
  const auto outcome = launch_and_supervise(options);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.message;
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(std::get<StepEvent>(events_[1].body).step, 2);
  EXPECT_EQ(outcome.ranks[0].last_step, 2);
}

TEST_F(LauncherTest, AKilledRankIsNamedWithItsStepAndEndsTheJob) {
  const auto start = Clock::now();
  // Rank 0 fails as a consequence, ranks 1 and 3 hang, 3 even ignores SIGTERM.
  const auto outcome =
      run(4,
          "echo $$ >$F/pid$RANK; step 17\n"
          "case $RANK in\n"
          "0) while [ ! -e $F/dead ]; do sleep 0.01; done; failed 1 peer lost; exit 70;;\n"
          "2) echo last words >&2; touch $F/dead; kill -9 $$;;\n"
          "3) trap '' TERM; while :; do sleep 0.1; done;;\n"
          "esac; sleep 100");
  EXPECT_EQ(outcome.exit_status, 70);
  EXPECT_EQ(outcome.failed_rank, 2);
  EXPECT_EQ(outcome.message,
            "rank 2 was killed by signal 9 (SIGKILL) at step 17\n"
            "  its last lines on stderr:\n    last words");
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_FALSE(outcome.ranks[2].ended_by_launcher);
  EXPECT_TRUE(outcome.ranks[1].ended_by_launcher);
  EXPECT_EQ(outcome.ranks[1].signal, SIGTERM);
  EXPECT_EQ(outcome.ranks[3].signal, SIGKILL);
  for (int r = 0; r < 4; ++r) EXPECT_FALSE(alive(std::stoi(file("pid" + std::to_string(r)))));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // nothing is left to reap
}

TEST_F(LauncherTest, TheEarliestFailedEventWins) {
  const auto outcome =
      run(2, "[ $RANK = 0 ] && failed 200 peer consequence || failed 100 disk cause; exit 70");
  EXPECT_EQ(outcome.exit_status, 70);
  EXPECT_EQ(outcome.failed_rank, 1);
  EXPECT_EQ(outcome.message, "rank 1 failed (disk): cause");
}

TEST_F(LauncherTest, AFailedEventEndsTheJobEvenIfTheRankHangs) {
  const auto start = Clock::now();
  const auto outcome = run(2, "[ $RANK = 1 ] && failed 1 stuck why; sleep 100");
  EXPECT_EQ(outcome.exit_status, 70);
  EXPECT_EQ(outcome.message, "rank 1 failed (stuck): why");
  EXPECT_LT(Clock::now() - start, 5s);
}

TEST_F(LauncherTest, ExitStatusesFollowTheContract) {
  const auto bad = run(2, "[ $RANK = 1 ] && sleep 100; failed 1 bad_input 'another hash'; exit 2");
  EXPECT_EQ(bad.exit_status, 2);
  EXPECT_EQ(bad.message, "rank 0 failed (bad_input): another hash");

  // All agree, though not at the same moment.
  const auto negative = run(3, "sleep 0.$RANK; exit 1");
  EXPECT_EQ(negative.exit_status, 1);
  EXPECT_EQ(negative.failed_rank, std::nullopt);

  const auto disagree = run(2, "exit $RANK");
  EXPECT_EQ(disagree.exit_status, 70);
  EXPECT_EQ(disagree.failed_rank, 1);
  EXPECT_EQ(disagree.message, "rank 1 exited with status 1");

  EXPECT_EQ(run(2, "exit 70").exit_status, 70);
  EXPECT_EQ(run(1, "exit 75").exit_status, 75);
  EXPECT_EQ(run(1, "exit 3").exit_status, 70);
}

TEST_F(LauncherTest, AProgramThatCannotStartIsNamed) {
  const size_t before = open_descriptors();
  auto options = job(2, "");
  options.program = folder_ + "/no-such-worker";
  auto outcome = launch_and_supervise(options);
  EXPECT_EQ(outcome.exit_status, 75);
  EXPECT_EQ(outcome.failed_rank, std::nullopt);
  EXPECT_THAT(outcome.message, HasSubstr("no-such-worker"));
  EXPECT_THAT(outcome.message, HasSubstr("No such file"));

  options.program = folder_ + "/no-program";
  std::ofstream(options.program) << "not executable";
  outcome = launch_and_supervise(options);
  EXPECT_EQ(outcome.exit_status, 75);
  EXPECT_THAT(outcome.message, HasSubstr("Permission denied"));

  options.world_size = 0;
  EXPECT_EQ(launch_and_supervise(options).exit_status, 2);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(LauncherTest, WhatIsNoEventGoesToStderrAndIsNotFatal) {
  const auto outcome =
      run(1,
          "echo hello; echo '{\"v\":9}'; echo '{\"v\":1,\"type\":\"later\"}'\n"
          "printf '\\377\\000\\n'; echo oops >&2; step 3; printf 'no newline' >&2");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.message;
  EXPECT_THAT(stderr_, Contains("0:hello"));
  EXPECT_THAT(stderr_, Contains("0:{\"v\":9}"));
  EXPECT_THAT(stderr_, Contains("0:oops"));
  EXPECT_THAT(stderr_, Contains("0:no newline"));
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(std::get<WarningEvent>(events_[0].body).code, "bad_event");
  EXPECT_EQ(std::get<StepEvent>(events_[1].body).step, 3);
}

TEST_F(LauncherTest, HugeLinesAreCutWithAWarning) {
  const auto outcome = run(1,
                           "head -c 3000000 /dev/zero | tr '\\0' x; echo; step 1\n"
                           "head -c 3000000 /dev/zero | tr '\\0' y >&2; exit 4");
  EXPECT_EQ(outcome.failed_rank, 0);
  EXPECT_LT(outcome.message.size(), 2000U);
  ASSERT_EQ(events_.size(), 3U);
  int warnings = 0;
  for (const Event& e : events_) {
    const auto* warning = std::get_if<WarningEvent>(&e.body);
    if (warning != nullptr && warning->code == "line_too_long") ++warnings;
  }
  EXPECT_EQ(warnings, 2);
  size_t longest = 0;
  for (const std::string& line : stderr_) longest = std::max(longest, line.size());
  EXPECT_EQ(longest, kMaxLineBytes + 2);  // "0:" and the cut line
}

TEST_F(LauncherTest, OnlyTheLastLinesOfStderrAreInTheMessage) {
  const auto outcome =
      run(1, "i=0; while [ $i -lt 50 ]; do echo line $i >&2; i=$((i+1)); done; exit 5");
  EXPECT_EQ(stderr_.size(), 50U);
  EXPECT_THAT(outcome.message, StartsWith("rank 0 exited with status 5\n"));
  EXPECT_THAT(outcome.message, HasSubstr("    line 40\n"));
  EXPECT_THAT(outcome.message, ::testing::EndsWith("    line 49"));
  EXPECT_THAT(outcome.message, ::testing::Not(HasSubstr("line 39")));
}

TEST_F(LauncherTest, AGrandchildNeitherSurvivesNorHoldsTheJob) {
  const auto start = Clock::now();
  const auto outcome = run(1, "sleep 100 & echo $! >$F/pid; exit 0");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_LT(Clock::now() - start, 3s);
  const pid_t pid = std::stoi(file("pid"));
  EXPECT_TRUE(eventually([pid] { return !alive(pid); }));
}

TEST_F(LauncherTest, ManyJobsLeakNothing) {
  (void)run(1, "exit 0");
  const size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run(3, "exit 7").exit_status, 70);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(LauncherTest, HandlersAreRestoredAndIgnoredSignalsStayIgnored) {
  auto* const before = ::signal(SIGHUP, SIG_IGN);  // as under nohup
  auto options = job(1, "kill -HUP $PPID; sleep 0.2; exit 0");
  EXPECT_EQ(launch_and_supervise(options).exit_status, 0);
  EXPECT_EQ(::signal(SIGHUP, before), SIG_IGN);
  EXPECT_EQ(::signal(SIGTERM, SIG_DFL), SIG_DFL);
  EXPECT_EQ(::signal(SIGPIPE, SIG_DFL), SIG_DFL);
}

TEST_F(LauncherTest, WorkersDoNotInheritTheIgnoredSigpipe) {
  EXPECT_EQ(run(1, "kill -PIPE $$; exit 0").message, "rank 0 was killed by signal 13 (SIGPIPE)");
}

TEST_F(LauncherTest, AnIgnoredSigchldDoesNotHideTheExit) {
  auto* const before = ::signal(SIGCHLD, SIG_IGN);
  const auto outcome = run(1, "exit 7");
  EXPECT_EQ(::signal(SIGCHLD, before), SIG_IGN);
  EXPECT_EQ(outcome.message, "rank 0 exited with status 7");
}

/// Runs the job in a child process, sends it `number` once all ranks run, and returns its exit.
class SignaledLauncherTest : public LauncherTest {
 protected:
  static constexpr int kRanks = 3;

  /// Each rank runs `prologue`, reports its pid and then waits for ever.
  pid_t start_supervisor(const std::string& prologue, std::chrono::milliseconds grace = 300ms) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setenv("TMPDIR", folder_.c_str(), 1);  // a killed supervisor leaves its job's folder
      auto options = job(kRanks,
                         prologue +
                             "\necho $$ >$F/tmp$RANK; mv $F/tmp$RANK $F/pid$RANK\n"
                             "while :; do sleep 0.05; done");
      options.kill_grace = grace;
      options.on_stderr = [](int, std::string_view) {};
      const auto outcome = launch_and_supervise(options);
      std::ofstream(folder_ + "/message") << outcome.message;
      ::_exit(outcome.exit_status);
    }
    return pid;
  }

  std::vector<pid_t> worker_pids() {
    std::vector<pid_t> pids;
    EXPECT_TRUE(eventually([this] {
      for (int r = 0; r < kRanks; ++r) {
        if (!std::filesystem::exists(folder_ + "/pid" + std::to_string(r))) return false;
      }
      return true;
    }));
    for (int r = 0; r < kRanks; ++r) pids.push_back(std::stoi(file("pid" + std::to_string(r))));
    return pids;
  }

  static int wait_for(pid_t pid) {
    int status = 0;
    EXPECT_TRUE(eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }));
    return status;
  }
};

TEST_F(SignaledLauncherTest, ASignalEndsTheJobWithoutOrphans) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    // Rank 1 ends in order when told, rank 2 ignores being told.
    const pid_t supervisor = start_supervisor(
        "[ $RANK = 1 ] && trap 'touch $F/told; exit 0' TERM; [ $RANK = 2 ] && trap '' TERM");
    const auto workers = worker_pids();
    for (const pid_t pid : workers) EXPECT_TRUE(alive(pid));
    ASSERT_EQ(::kill(supervisor, number), 0);
    const int status = wait_for(supervisor);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + number);
    EXPECT_THAT(file("message"), StartsWith("stopped by signal " + std::to_string(number)));
    EXPECT_TRUE(std::filesystem::exists(folder_ + "/told"));
    for (const pid_t pid : workers) EXPECT_FALSE(alive(pid));
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::filesystem::remove_all(entry.path());
    }
  }
}

TEST_F(SignaledLauncherTest, ASecondSignalDoesNotWaitForTheGrace) {
  const pid_t supervisor = start_supervisor("trap '' TERM", 60s);
  const auto workers = worker_pids();
  ::kill(supervisor, SIGINT);
  std::this_thread::sleep_for(200ms);
  EXPECT_TRUE(alive(workers[0]));
  ::kill(supervisor, SIGINT);
  const int status = wait_for(supervisor);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  for (const pid_t pid : workers) EXPECT_FALSE(alive(pid));
}

TEST_F(SignaledLauncherTest, WorkersDieWithAKilledSupervisor) {
  const pid_t supervisor = start_supervisor("trap '' TERM HUP");
  const auto workers = worker_pids();
  ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
  (void)wait_for(supervisor);
  for (const pid_t pid : workers) EXPECT_TRUE(eventually([pid] { return !alive(pid); }));
}

}  // namespace
}  // namespace meshwright
