// SPDX-License-Identifier: Apache-2.0
// A file that a test writes and that goes away with it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace meshwright::testing {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text = "", const std::string& name = "file.json") {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string(test->test_suite_name()) + "_" + test->name() + "_" +
               std::to_string(getpid()) + "_" + std::to_string(count_++));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / name).string();
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() {
    std::error_code ec;
    std::filesystem::remove_all(folder_, ec);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string folder() const { return folder_.string(); }

 private:
  static inline int count_ = 0;
  std::filesystem::path folder_;
  std::string path_;
};

}  // namespace meshwright::testing
