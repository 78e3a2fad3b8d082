// Trainer: one rank of a training run. It interprets the Program, action by action.
//
// Reads: a Plan, samples, the job's process groups. Feeds: the worker's subcommands. No schedule,
// collective order or lifetime is written here: they are the Program's and the ModelGraph's, the
// same that the simulator prices. Ranks agree on everything else by rule: loss is summed over the
// global batch's counted tokens and divided by their number, and weights start from (seed, tensor
// name, element), so a step is the same in every layout up to rounding.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "exec/comm/communicator.h"
#include "exec/data/sample_source.h"
#include "exec/runtime/fault.h"
#include "sim/graph/operator.h"
#include "sim/plan/plan.h"
#include "sim/report/timeline.h"
#include "sim/schedule/placement.h"

namespace meshwright {

/// Sees a bucket's gradients when they are summed over replicas and not yet clipped: all elements,
/// or where the optimizer is sharded those of PlacementTable::owned_range(), which starts at
/// `first`.
using GradientHook =
    std::function<void(int bucket, int64_t first, std::span<const float> gradients)>;

/// Sees how long each operator took; for calibrate.
using OperatorHook = std::function<void(const Operator&, double seconds)>;

struct TrainerOptions {
  Fault fault = Fault::kNone;
  GradientHook on_gradients{};
  OperatorHook on_operator{};
};

struct StepResult {
  double loss = 0;       ///< Mean over the counted tokens of the global batch.
  double grad_norm = 0;  ///< Global, before clipping.
  double learning_rate = 0;
  int64_t tokens = 0;  ///< Of the global batch, counted in the loss or not.
  RankTimeline timeline;
};

/// Bytes that a rank holds between steps.
struct ResidentBytes {
  int64_t weights = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t other = 0;  ///< Rotary tables.
};

/// Not thread-safe. Uses one ATen thread's worth of work per call; all ranks of the job make the
/// same calls.
class Trainer {
 public:
  /// Allocates and initialises this rank's part of the model; blocks until the groups are
  /// connected. `world` and `samples` must outlive it; world.world_size() is the plan's.
  Trainer(const Plan& plan,
          CommWorld& world,
          const SampleSource& samples,
          TrainerOptions options = {});
  ~Trainer();

  /// One optimizer step, `step` counted from 0. Throws what a collective failed with (c10::Error,
  /// std::exception).
  StepResult step(int64_t step);

  /// The action that runs or ran last, for messages: "forward(s0,m1,b0-4)".
  [[nodiscard]] std::string current_action() const;

  [[nodiscard]] ResidentBytes resident_bytes() const;
  [[nodiscard]] const PlacementTable& table() const;
  [[nodiscard]] const RankPlacement& placement() const;
  /// Weights of a bucket [padded_numel]; of one that ZeRO-3 shards, this rank's own range.
  [[nodiscard]] std::span<const float> weights(int bucket) const;

  /// Element by element, the maximum or the sum over all ranks of the job.
  void max_over_ranks(std::span<double> values);
  void sum_over_ranks(std::span<double> values);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace meshwright
