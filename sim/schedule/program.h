// Program: what each rank does in one training step, in order.
//
// Reads: a Plan. Feeds: the simulator, which gives each action a duration, the memory replay, and
// the worker, which executes it. Schedules (sim/schedule/pipeline) are generators of slots, which
// are expanded here: receives before, sends after, recompute and reductions in between. All ranks
// of a pipeline rank share one list. check_program() proves a list complete and free of deadlock.
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
  kForward,         ///< Forward lists of blocks [block_begin, block_end).
  kRecompute,       ///< Recompute list of one block.
  kBackward,        ///< Backward lists (input and weight gradients) of the blocks, last to first.
  kBackwardInput,   ///< The first half of a split backward.
  kBackwardWeight,  ///< The second half, at any later time.
  kSend,  ///< Starts sending output (forward) or input gradient (backward); first ends the oldest
          ///< of its virtual stage and direction where too many are under way.
  kPostRecv,   ///< Posts a later receive, so that the transfer runs behind the actions up to there.
  kRecv,       ///< Receives the stage's input or output gradient.
  kSumCopies,  ///< Adds the partial gradients of copies inside the tp group, for one bucket.
  kSumTied,    ///< Adds a tied bucket between first and last stage.
  kReduce,     ///< Starts reducing a bucket's gradients over data parallelism.
  kWaitReduce,  ///< Ends it.
  kGradNorm,    ///< Global gradient norm, loss and token count over all ranks; ends pending sends.
  kOptimizer,   ///< Clip and AdamW on the rank's own part of one bucket.
  kGather,      ///< ZeRO: starts spreading the parameters of a bucket: once updated (stages 1 and
                ///< 2), or before they are read (stage 3).
  kWaitGather,
  kRelease,  ///< ZeRO-3: drops the gathered parameters of a bucket.
};
inline constexpr int kNumActionKinds = static_cast<int>(ActionKind::kRelease) + 1;

[[nodiscard]] std::string_view to_string(ActionKind kind);

enum class Direction : uint8_t { kForward, kBackward };

struct Action {
  ActionKind kind = ActionKind::kForward;
  Direction direction = Direction::kForward;  ///< Of a send or receive.
  int micro_batch = -1;
  int block_begin = 0;
  int block_end = 0;
  int bucket = -1;         ///< Index into RankPlacement::buckets.
  bool joined = false;     ///< Part of the collective that the reduction before it starts.
  int virtual_stage = -1;  ///< In StageMap; -1 for what is done once for all stages of a rank.
  int peer = -1;           ///< Of a send or receive: the pipeline rank at the other end,
  int peer_stage = -1;     ///< and its virtual stage.
  friend bool operator==(const Action&, const Action&) = default;
};

[[nodiscard]] constexpr bool walks_blocks(ActionKind k) { return k <= ActionKind::kBackwardWeight; }

[[nodiscard]] constexpr bool is_transfer(ActionKind k) {
  return k == ActionKind::kSend || k == ActionKind::kPostRecv || k == ActionKind::kRecv;
}

/// Short text, `stage` being the pipeline rank: "forward(s0,m1,b0-4)", "reduce(s0,k2)"; with
/// virtual stages "forward(s0,v4,m1,b5-6)".
[[nodiscard]] std::string to_string(const Action& action, int stage);

struct Program {
  int num_micro_batches = 0;
  /// Sends of one virtual stage and direction that may be under way: a further one first ends the
  /// oldest. More than one where a stage runs ahead of what its receiver asks for.
  int pending_sends = 1;
  std::vector<std::vector<Action>> stages;  ///< One list per pipeline rank.
};

/// The step's program.
[[nodiscard]] Program build_program(const Plan& plan);

/// The same from placements that are at hand (one per stage), and with another number of
/// micro-batches than the plan's: a shorter step of the same shape.
[[nodiscard]] Program build_program(const Plan& plan,
                                    const std::vector<RankPlacement>& placements,
                                    int64_t num_micro_batches);

}  // namespace meshwright
