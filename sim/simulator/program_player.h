// ProgramPlayer: plays a Program as events and records the timeline.
//
// Each stage has one compute stream (its list, in order) and one communication stream (bucket
// reductions and gathers, in the order they are started). A transfer between stages begins when the
// send was issued and the receive is posted, as on Gloo and NCCL; a send ends the one before it in
// the same direction first.
#pragma once

#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "sim/report/timeline.h"
#include "sim/simulator/event_loop.h"
#include "sim/simulator/stage_costs.h"

namespace meshwright {

class ProgramPlayer {
 public:
  ProgramPlayer(const Plan& plan, const Program& program, const StageCosts& costs, EventLoop loop);

  /// The timeline of one step: one rank per stage. A program in which stages wait for each other
  /// for ever is a defect of its generator: MW_CHECK.
  [[nodiscard]] Timeline play();

 private:
  struct Transfer {
    bool sent = false;    ///< The sender issued it.
    bool posted = false;  ///< The receiver waits for it.
    bool done = false;
  };
  /// What a stage's compute stream waits for.
  enum class Wait { kNothing, kWork, kTransfer, kEarlierSend, kBucket, kPartners };
  struct Stage {
    size_t next = 0;
    Wait wait = Wait::kNothing;
    int waited_transfer = -1;
    int waited_bucket = -1;
    int last_send[2] = {-1, -1};  ///< Transfer index per direction.
    std::deque<int> comm_queue;   ///< Buckets in the communication stream, front is running.
    std::vector<bool> comm_done;  ///< Per bucket, of the current phase (reduce, then gather).
    RankTimeline timeline;
  };

  void advance(int stage);
  bool begin(int stage, const Action& action);
  void finish_span(int stage);
  void start_comm(int stage);
  int transfer_index(int from, Direction d, int micro_batch);
  void try_transfer(int index);
  void join(int stage, ActionKind kind);
  [[nodiscard]] double weight() const { return ranks_per_stage_; }

  const Plan& plan_;
  const Program& program_;
  const StageCosts& costs_;
  EventLoop loop_;
  double ranks_per_stage_;
  std::vector<Stage> stages_;
  std::map<std::tuple<int, int, int>, int> transfer_ids_;
  std::vector<Transfer> transfers_;
  std::map<ActionKind, std::vector<int>> joined_;  ///< Stages that have arrived at a joint action.
};

}  // namespace meshwright
