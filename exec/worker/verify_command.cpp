// SPDX-License-Identifier: Apache-2.0
#include "exec/worker/verify_command.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "exec/comm/communicator.h"
#include "exec/data/sample_source.h"
#include "exec/parity/gradient_check.h"
#include "exec/runtime/trainer.h"
#include "exec/worker/refuse.h"
#include "sim/core/json_reader.h"
#include "sim/plan/executor_support.h"
#include "sim/plan/plan_file.h"

namespace meshwright {
namespace {

constexpr std::chrono::minutes kPeerTimeout{2};
constexpr uint64_t kSampleSeed = 7;

std::optional<Fault> fault_named(const std::string& name) {
  if (name.empty()) return Fault::kNone;
  for (const Fault f :
       {Fault::kSkippedAllReduce, Fault::kDoubledNormTerm, Fault::kWrongLossScale}) {
    if (name == to_string(f)) return f;
  }
  return std::nullopt;
}

std::vector<std::string> case_files(const std::string& dir) {
  std::vector<std::string> files;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(dir, ec)) {
    if (entry.path().filename().string().starts_with("case"))
      files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int run_verify(const VerifyArguments& arguments,
               const WorkerEnvironment& environment,
               EventWriter& events) {
  const std::optional<Fault> fault = fault_named(arguments.inject);
  if (!fault)
    return refuse(events,
                  {.where = "--inject",
                   .field = "inject",
                   .value = arguments.inject,
                   .rule = "is not a fault"});
  std::map<std::string, ParityReference> references;  // by the hash of the one-rank plan
  std::vector<ParityResult> results;
  const std::vector<std::string> files = case_files(arguments.cases_dir);
  for (size_t i = 0; i < files.size(); ++i) {
    auto file = read_plan_file(files[i]);
    if (!file) return refuse(events, file.error());
    const Plan& plan = file->plan;
    if (const auto refusal = executor_refuses(plan)) return refuse(events, *refusal);
    if (environment.rank >= plan.world_size()) continue;
    const auto samples =
        random_source(plan.model().vocab_size, plan.workload().seq_len, kSampleSeed);
    const Plan reference_plan = reference_of(plan);
    const std::string key = plan_hash(reference_plan);
    if (!references.contains(key)) references.emplace(key, run_reference(reference_plan, *samples));

    const auto world = CommWorld::connect(environment.store_url + "-case" + std::to_string(i),
                                          environment.rank,
                                          plan.world_size(),
                                          kPeerTimeout);
    const PlacementTable table(plan);
    const RankPlacement placement = table.of_rank(environment.rank);
    GradientCheck check(plan, table, placement, environment.rank, references.at(key));
    TrainerOptions options{
        .fault = *fault, .on_gradients = [&](int bucket, int64_t first, std::span<const float> g) {
          check.add(bucket, first, g);
        }};
    Trainer trainer(plan, *world, *samples, options);
    const StepResult step = trainer.step(0);
    results.push_back(check.finish(trainer, step));
  }
  if (environment.rank == 0) {
    if (auto written = write_text_file(arguments.output_path, to_json_text(results)); !written)
      return refuse(events, written.error());
  }
  return 0;
}

}  // namespace meshwright
