// The environment of a job's ranks, and the temporary folder that their rendezvous file lives in.
//
// Feeds: sim/launch/launcher.cpp; the worker reads the variables.
#pragma once

#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/launch/launcher.h"

namespace meshwright {

/// A fresh folder, readable by this user only; the destructor removes it with all that is in it.
class JobFolder {
 public:
  /// kLaunchFailed naming the folder that could not be made.
  [[nodiscard]] static Result<JobFolder> create();

  JobFolder(JobFolder&& other) noexcept;
  JobFolder& operator=(JobFolder&&) = delete;
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;
  ~JobFolder();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit JobFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

/// The whole environment of one rank, "NAME=value": this process's own, then OMP_NUM_THREADS and
/// MESHWRIGHT_STORE, then options.environment, then the rank's numbers; the last one wins.
[[nodiscard]] std::vector<std::string> rank_environment(const LaunchOptions& options,
                                                        int rank,
                                                        const std::string& job_folder);

}  // namespace meshwright
