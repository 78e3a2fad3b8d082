// SPDX-License-Identifier: Apache-2.0
#include "sim/launch/job_folder.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

namespace meshwright {

Result<JobFolder> JobFolder::create() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string path = (parent / "meshwright-XXXXXX").string();
  if (error || ::mkdtemp(path.data()) == nullptr) {
    return Error{.code = ErrorCode::kLaunchFailed,
                 .where = path,
                 .rule = fmt::format("cannot make a temporary folder: {}",
                                     error ? error.message() : std::strerror(errno)),
                 .remedy = "set TMPDIR to a folder that can be written"};
  }
  return JobFolder(std::move(path));
}

JobFolder::JobFolder(JobFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

JobFolder::~JobFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> rank_environment(const LaunchOptions& options,
                                          int rank,
                                          const std::string& job_folder) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  variables["OMP_NUM_THREADS"] = "1";
  variables["MESHWRIGHT_STORE"] = fmt::format("file:{}/store", job_folder);
  for (const auto& [name, value] : options.environment) variables[name] = value;
  variables["RANK"] = variables["LOCAL_RANK"] = std::to_string(rank);
  variables["WORLD_SIZE"] = variables["LOCAL_WORLD_SIZE"] = std::to_string(options.world_size);

  std::vector<std::string> result;
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

}  // namespace meshwright
