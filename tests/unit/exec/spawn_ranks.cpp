// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/exec/spawn_ranks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

namespace meshwright {

namespace {

constexpr unsigned kChildSeconds = 25;

pid_t fork_child(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  alarm(kChildSeconds);
  std::signal(SIGPIPE,
              SIG_IGN);  // as the worker does: writing to a dead peer is an error, not an end
  int code = 0;
  try {
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child threw: %s\n", error.what());
    code = 2;
  }
  if (::testing::Test::HasFailure()) code = 1;
  std::fflush(nullptr);
  _exit(code);
}

void expect_success(pid_t pid, int rank) {
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status)) << "rank " << rank << " ended by signal " << WTERMSIG(status);
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), 0) << "rank " << rank;
  }
}

}  // namespace

void spawn_ranks(int world_size,
                 const std::function<void(CommWorld&)>& body,
                 std::chrono::milliseconds timeout) {
  std::string folder = (std::filesystem::temp_directory_path() / "meshwright-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < world_size; ++rank) {
    children.push_back(fork_child([&, rank] {
      const auto world = CommWorld::connect("file:" + folder + "/store", rank, world_size, timeout);
      body(*world);
    }));
  }
  for (int rank = 0; rank < world_size; ++rank) {
    expect_success(children[static_cast<size_t>(rank)], rank);
  }
  std::filesystem::remove_all(folder);
}

void spawn_one(const std::function<void()>& body) { expect_success(fork_child(body), 0); }

}  // namespace meshwright
