// ProgramPlayer: plays a Program as events and records the timeline.
//
// Each pipeline rank has one compute stream (its list, in order) and one communication stream
// (bucket reductions and gathers, in the order they are started). A transfer between stages begins
// when the send was issued and the receive is posted, as on Gloo and NCCL; a send first ends the
// one before it of the same virtual stage and direction. All state is in flat arrays that are made
// before the first event: a step of a large cluster plays millions of actions a second.
#pragma once

#include <vector>

#include "sim/report/timeline.h"
#include "sim/simulator/event_loop.h"
#include "sim/simulator/stage_costs.h"

namespace meshwright {

class ProgramPlayer {
 public:
  ProgramPlayer(const Plan& plan, const Program& program, const StageCosts& costs, EventLoop loop);

  /// The timeline of one step: one rank per pipeline rank. A program in which ranks wait for each
  /// other for ever is a defect of its generator: MW_CHECK.
  [[nodiscard]] Timeline play();

 private:
  struct Transfer {
    bool sent = false;    ///< The sender issued it.
    bool posted = false;  ///< The receiver is ready for it.
    bool done = false;
  };
  /// What a rank's compute stream waits for.
  enum class Wait { kNothing, kWork, kTransfer, kEarlierSend, kBucket, kPartners };
  struct Stage {
    size_t next = 0;
    Wait wait = Wait::kNothing;
    int waited_transfer = -1;
    size_t waited_comm = 0;                 ///< Index into comm_done.
    ListCost work;                          ///< Of the running action, where it walks blocks.
    std::vector<const Action*> comm_queue;  ///< Of the step; [comm_front] is running.
    size_t comm_front = 0;
    std::vector<char> comm_done;  ///< Of the latest start: [2 bucket + gather].
    RankTimeline timeline;
  };

  void advance(int rank);
  bool begin(int rank, const Action& action);
  bool begin_send(int rank, const Action& action, Span& span);
  void finish_span(int rank);
  void finish_bucket(int rank);
  /// The part of a bucket's exchange that nothing hides, after the rest is done.
  void end_wait_for_bucket(int rank);
  void finish_transfer(int transfer);
  void resume_after_transfer(int rank, int transfer);
  void start_comm(int rank);
  void post(int transfer);
  void join(int rank, const Action& action);
  [[nodiscard]] static size_t comm_index(int bucket, bool gather) {
    return 2 * static_cast<size_t>(bucket) + (gather ? 1 : 0);
  }
  [[nodiscard]] int transfer_index(int sender, Direction d, int micro_batch) const {
    return (2 * sender + static_cast<int>(d)) * num_micro_batches_ + micro_batch;
  }

  const Plan& plan_;
  const Program& program_;
  const StageCosts& costs_;
  EventLoop loop_;
  int num_micro_batches_;
  double ranks_per_stage_;
  double transfer_s_;
  std::vector<Stage> stages_;
  std::vector<Transfer> transfers_;  ///< By transfer_index().
  std::vector<int> under_way_;       ///< Per virtual stage and direction, its latest pending_sends.
  std::vector<int> num_sent_;        ///< Per virtual stage and direction.
  std::vector<int> at_tie_;          ///< Ranks that have arrived at kSumTied,
  std::vector<int> at_norm_;         ///< and at kGradNorm.
};

}  // namespace meshwright
