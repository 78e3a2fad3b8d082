// SPDX-License-Identifier: Apache-2.0
#include "exec/worker/train_command.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>

#include "exec/comm/communicator.h"
#include "exec/data/sample_source.h"
#include "exec/runtime/counting_allocator.h"
#include "exec/runtime/trainer.h"
#include "exec/telemetry/run_recorder.h"
#include "exec/worker/refuse.h"
#include "sim/core/json_reader.h"
#include "sim/data/training_data.h"
#include "sim/plan/executor_support.h"
#include "sim/plan/plan_file.h"

namespace meshwright {
namespace {

/// Longest wait for a peer. A dead peer shows at once; only a stopped one shows by this.
constexpr std::chrono::minutes kPeerTimeout{10};

Result<PlanFile> read_plan(const std::string& path, int world_size) {
  MW_ASSIGN_OR_RETURN(PlanFile file, read_plan_file(path));
  if (file.plan.world_size() != world_size) {
    return Error{.where = path,
                 .field = "WORLD_SIZE",
                 .value = std::to_string(world_size),
                 .rule = "the plan is for " + std::to_string(file.plan.world_size()) + " ranks",
                 .remedy = "start that many workers, or make a plan for this number"};
  }
  if (auto refusal = executor_refuses(file.plan)) {
    refusal->where = path + "#/decision" + refusal->where;
    return *refusal;
  }
  return file;
}

Result<Ok> make_folder(const std::string& path) {
  std::error_code failure;
  std::filesystem::create_directories(path, failure);
  if (failure) {
    return Error{.where = "--out",
                 .field = "out",
                 .value = path,
                 .rule = failure.message(),
                 .remedy = "name another folder"};
  }
  return Ok{};
}

/// LibTorch's messages carry a stack trace from their second line on.
std::string first_line(const char* message) {
  const std::string text = message;
  return text.substr(0, text.find('\n'));
}

/// What rank 0 tells about a step.
void tell_step(EventWriter& events, int64_t index, const StepResult& step) {
  events.emit(StepEvent{.step = index,
                        .loss = step.loss,
                        .grad_norm = step.grad_norm,
                        .lr = step.learning_rate,
                        .tokens = step.tokens,
                        .step_time_s = step.timeline.step_end_s - step.timeline.step_start_s,
                        .peak_memory_bytes = allocator_stats().peak_bytes});
  if (std::isfinite(step.loss) && std::isfinite(step.grad_norm)) return;
  events.emit(WarningEvent{.code = "loss_not_finite",
                           .message = "step " + std::to_string(index) +
                                      " has a loss or gradient norm that is not finite"});
}

}  // namespace

int run_train(const TrainArguments& arguments,
              const WorkerEnvironment& environment,
              EventWriter& events) {
  auto plan_file = read_plan(arguments.plan_path, environment.world_size);
  if (!plan_file) return refuse(events, plan_file.error());
  auto tokens = open_training_data(arguments.data_path, plan_file->plan);
  if (!tokens) return refuse(events, tokens.error());
  const auto data =
      token_file_source(std::move(tokens).value(), plan_file->plan.workload().seq_len);
  if (auto made = make_folder(arguments.out_dir); !made) return refuse(events, made.error());

  const auto world = CommWorld::connect(
      environment.store_url, environment.rank, environment.world_size, kPeerTimeout);
  Trainer trainer(plan_file->plan, *world, *data);
  RunRecorder recorder(environment.rank, plan_file->hash);
  events.emit(StartedEvent{.plan_hash = plan_file->hash, .world = environment.world_size});

  for (int64_t step = 0; step < arguments.steps; ++step) {
    try {
      StepResult result = trainer.step(step);
      if (environment.rank == 0) tell_step(events, step, result);
      recorder.add(std::move(result));
    } catch (const std::exception& e) {  // c10::Error, or Gloo's own
      events.emit(FailedEvent{.code = "step_failed",
                              .step = step,
                              .action = trainer.current_action(),
                              .message = first_line(e.what())});
      return static_cast<int>(ErrorCode::kRankFailed);
    }
    if (step == 0) reset_peak();  // start-up temporaries are not part of a step
  }

  const int64_t peak_bytes = allocator_stats().peak_bytes;
  std::vector<double> slowest_s = recorder.step_times();
  trainer.max_over_ranks(slowest_s);
  const std::string path = arguments.out_dir + "/rank" + std::to_string(environment.rank) + ".json";
  const RankReport report = recorder.report(slowest_s, trainer.resident_bytes(), peak_bytes);
  if (auto written = write_text_file(path, to_json_text(report)); !written)
    return refuse(events, written.error());
  events.emit(FinishedEvent{.steps = arguments.steps, .report_json = {}});
  return 0;
}

}  // namespace meshwright
