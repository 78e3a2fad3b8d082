// Program: what each rank does in one training step, in order.
//
// Reads: a Plan. Feeds: the simulator, which gives each action a duration, the memory replay, and
// the worker, which executes it. Schedules are generators of these lists and nothing else knows
// about them. All ranks of a stage share one list.
//
// Rank 0 of tp2 pp2 with two micro-batches, 1F1B:
//   F(m0) send(m0) F(m1) send(m1) recv(m0) B(m0) recv(m1) B(m1) sum_tied reduce wait_reduce
//   grad_norm optimizer
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/schedule/placement.h"

namespace meshwright {

enum class ActionKind : uint8_t {
  kForward,    ///< Forward lists of blocks [block_begin, block_end).
  kRecompute,  ///< Recompute list of one block.
  kBackward,   ///< Backward lists (input and weight gradients) of the blocks, last to first.
  kSend,  ///< Starts sending output (forward) or input gradient (backward); first ends the send
          ///< before it.
  kRecv,  ///< Receives the stage's input or output gradient.
  kSumCopies,   ///< Adds the partial gradients of copies inside the tp group, for one bucket.
  kSumTied,     ///< Adds a tied bucket between first and last stage.
  kReduce,      ///< Starts reducing a bucket's gradients over data parallelism.
  kWaitReduce,  ///< Ends it.
  kGradNorm,    ///< Global gradient norm, loss and token count over all ranks; ends pending sends.
  kOptimizer,   ///< Clip and AdamW on the rank's own part of one bucket.
  kGather,      ///< ZeRO: starts spreading updated parameters of a bucket.
  kWaitGather,
};

[[nodiscard]] std::string_view to_string(ActionKind kind);

enum class Direction : uint8_t { kForward, kBackward };

struct Action {
  ActionKind kind = ActionKind::kForward;
  Direction direction = Direction::kForward;  ///< Of a send or recv.
  int micro_batch = -1;
  int block_begin = 0;
  int block_end = 0;
  int bucket = -1;  ///< Index into RankPlacement::buckets.
  friend bool operator==(const Action&, const Action&) = default;
};

/// Short text: "F(s0,m1,b0-4)", "reduce(s0,k2)".
[[nodiscard]] std::string to_string(const Action& action, int stage);

struct Program {
  int num_micro_batches = 0;
  std::vector<std::vector<Action>> stages;  ///< One list per pipeline stage.
};

/// The step's program.
[[nodiscard]] Program build_program(const Plan& plan);

/// The same from placements that are at hand (one per stage), and with another number of
/// micro-batches than the plan's: a shorter step of the same shape.
[[nodiscard]] Program build_program(const Plan& plan,
                                    const std::vector<RankPlacement>& placements,
                                    int64_t num_micro_batches);

/// A schedule: the order of forward and backward micro-batches on one stage.
struct PipelineSlot {
  Direction direction;
  int micro_batch;
};
[[nodiscard]] std::vector<PipelineSlot> pipeline_order(ScheduleKind kind,
                                                       int stage,
                                                       int num_stages,
                                                       int num_micro_batches);

}  // namespace meshwright
