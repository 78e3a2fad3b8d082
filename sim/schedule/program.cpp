// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/schedule/pipeline/pipeline_order.h"
#include "sim/schedule/zero_actions.h"

namespace meshwright {
namespace {

/// GPipe and 1F1B receive where they need the message; the others keep the next receive of each
/// direction posted, so that transfers run behind computation.
bool posts_ahead(ScheduleKind schedule) {
  return schedule != ScheduleKind::kGpipe && schedule != ScheduleKind::k1f1b;
}

Direction direction_of(const PipelineSlot& slot) {
  return slot.work == SlotWork::kForward ? Direction::kForward : Direction::kBackward;
}

class RankProgram {
 public:
  RankProgram(const Plan& plan, const RankPlacement& placement, int rank, int num_micro_batches)
      : plan_(plan), map_(plan.stage_map()), placement_(placement), rank_(rank) {
    const Layout& l = plan.layout();
    slots_ = pipeline_order({.kind = l.schedule,
                             .num_ranks = l.pp,
                             .virtual_stages = l.virtual_stages,
                             .num_micro_batches = num_micro_batches},
                            rank);
    zero_.emplace(plan, placement, slots_, actions_);
    last_gradients_.resize(static_cast<size_t>(map_.size()), -1);
    for (size_t i = 0; i < slots_.size(); ++i) {
      const SlotWork w = slots_[i].work;
      if (w == SlotWork::kBackward || w == SlotWork::kBackwardWeight)
        last_gradients_[static_cast<size_t>(slots_[i].virtual_stage)] = static_cast<int>(i);
    }
  }

  std::vector<Action> build() {
    actions_.reserve(slots_.size() * 4);
    size_t end = 0;
    for (size_t begin = 0; begin < slots_.size(); begin = end) {
      end = turn_end(begin);
      for (size_t i = begin; i < end; ++i) receive(ActionKind::kRecv, slots_[i]);
      if (posts_ahead(plan_.layout().schedule)) post_next_receives(end);
      for (size_t i = begin; i < end; ++i) compute(i);
      for (size_t i = begin; i < end; ++i) send(slots_[i]);
    }
    finish_gradients();
    return std::move(actions_);
  }

 private:
  /// Slots that run together: [begin, turn_end(begin)).
  [[nodiscard]] size_t turn_end(size_t begin) const {
    return begin + (slots_[begin].joins_next ? 2 : 1);
  }
  [[nodiscard]] bool reduces() const {
    return plan_.layout().replicas() * plan_.layout().model_copies() > 1;
  }

  Action& add(ActionKind kind) { return actions_.emplace_back(Action{.kind = kind}); }
  void add_blocks(ActionKind kind, const PipelineSlot& slot, int begin, int end) {
    Action& a = add(kind);
    a.micro_batch = slot.micro_batch;
    a.virtual_stage = slot.virtual_stage;
    a.block_begin = begin;
    a.block_end = end;
  }
  void add_bucket(ActionKind kind, size_t bucket) { add(kind).bucket = static_cast<int>(bucket); }

  /// A message to or from `peer_stage`; none where that is on this rank too.
  void transfer(ActionKind kind, const PipelineSlot& slot, int peer_stage) {
    if (peer_stage < 0 || map_[peer_stage].rank == rank_) return;
    Action& a = add(kind);
    a.direction = direction_of(slot);
    a.micro_batch = slot.micro_batch;
    a.virtual_stage = slot.virtual_stage;
    a.peer = map_[peer_stage].rank;
    a.peer_stage = peer_stage;
  }
  /// The virtual stage that a slot receives from; -1 where it needs no message.
  [[nodiscard]] int sender(const PipelineSlot& slot) const {
    if (slot.work == SlotWork::kBackwardWeight) return -1;
    const VirtualStage& v = map_[slot.virtual_stage];
    const int from = slot.work == SlotWork::kForward ? v.previous : v.next;
    return from >= 0 && map_[from].rank != rank_ ? from : -1;
  }
  void receive(ActionKind kind, const PipelineSlot& slot) { transfer(kind, slot, sender(slot)); }
  /// Posts the first receive at or after slot `begin` of each direction, once.
  void post_next_receives(size_t begin) {
    for (size_t& next : next_posted_) {
      const auto direction = static_cast<Direction>(&next - next_posted_);
      size_t i = begin;
      while (i < slots_.size() && (direction_of(slots_[i]) != direction || sender(slots_[i]) < 0))
        ++i;
      if (i < slots_.size() && i >= next) receive(ActionKind::kPostRecv, slots_[i]);
      next = std::max(next, i + 1);
    }
  }
  void send(const PipelineSlot& slot) {
    if (slot.work == SlotWork::kBackwardWeight) return;
    const VirtualStage& v = map_[slot.virtual_stage];
    transfer(ActionKind::kSend, slot, slot.work == SlotWork::kForward ? v.next : v.previous);
  }

  void compute(size_t index) {
    const PipelineSlot& slot = slots_[index];
    const VirtualStage& v = map_[slot.virtual_stage];
    // The last gradients of the step: their buckets can leave.
    const bool reduce_now =
        last_gradients_[static_cast<size_t>(slot.virtual_stage)] == static_cast<int>(index);
    switch (slot.work) {
      case SlotWork::kForward:
        return forward(slot, v);
      case SlotWork::kBackward:
        return backward(ActionKind::kBackward, slot, true, reduce_now);
      case SlotWork::kBackwardInput:
        return backward(ActionKind::kBackwardInput, slot, true, false);
      case SlotWork::kBackwardWeight:
        return backward(ActionKind::kBackwardWeight, slot, false, reduce_now);
    }
  }

  void forward(const PipelineSlot& slot, const VirtualStage& v) {
    if (!zero_->shards_parameters())
      return add_blocks(ActionKind::kForward, slot, v.block_begin, v.block_end);
    for (int b = v.block_begin; b < v.block_end; ++b) {
      zero_->before_block();
      add_blocks(ActionKind::kForward, slot, b, b + 1);
      zero_->after_block();
    }
  }

  void backward(ActionKind kind, const PipelineSlot& slot, bool recomputes, bool reduce_now) {
    const VirtualStage& v = map_[slot.virtual_stage];
    const bool again = recomputes && plan_.layout().recompute != Recompute::kNone;
    if (!again && !reduce_now && !zero_->shards_gradients())
      return add_blocks(kind, slot, v.block_begin, v.block_end);
    for (int b = v.block_end - 1; b >= v.block_begin; --b) {
      zero_->before_block();
      if (again && plan_.recomputes(b)) add_blocks(ActionKind::kRecompute, slot, b, b + 1);
      for_each_sharded(b, [&](size_t bucket) { zero_->before_gradient(bucket); });
      add_blocks(kind, slot, b, b + 1);
      zero_->after_block();
      for_each_sharded(b, [&](size_t bucket) { reduce_bucket(bucket); });
      if (reduce_now && !zero_->shards_gradients()) reduce_block(b);
    }
    if (kind != ActionKind::kBackwardInput) zero_->flush();
  }

  /// Buckets of a block whose gradient every backward reduces: all but those that are whole at
  /// the end of the step.
  template <class Visit>
  void for_each_sharded(int block, Visit&& visit) {
    if (!zero_->shards_gradients()) return;
    for (size_t i = 0; i < placement_.buckets.size(); ++i) {
      const Bucket& b = placement_.buckets[i];
      if (b.block == block && !b.frozen && !b.whole_at_end) visit(i);
    }
  }

  void reduce_block(int block) {
    for (size_t i = 0; i < placement_.buckets.size(); ++i) {
      const Bucket& b = placement_.buckets[i];
      if (b.block == block && !b.whole_at_end) reduce_bucket(i);
    }
  }

  void reduce_bucket(size_t i) {
    if (placement_.buckets[i].frozen) return;
    if (!placement_.buckets[i].partial.empty()) add_bucket(ActionKind::kSumCopies, i);
    if (reduces()) zero_->reduce(i);
  }

  void finish_gradients() {
    // Ties are summed before sharding, and after all other buckets have left: the other stage may
    // be late.
    for (size_t i = 0; i < placement_.buckets.size(); ++i) {
      const Bucket& b = placement_.buckets[i];
      if (b.frozen) continue;
      if (b.tied) add_bucket(ActionKind::kSumTied, i);
      if (b.whole_at_end) {
        reduce_bucket(i);
        zero_->flush();
      }
    }
    zero_->finish();
    add(ActionKind::kGradNorm);
    for (size_t i = 0; i < placement_.buckets.size(); ++i) {
      if (placement_.buckets[i].frozen) continue;
      add_bucket(ActionKind::kOptimizer, i);
      if (spreads(placement_.buckets[i])) add_bucket(ActionKind::kGather, i);
    }
    for (size_t i = 0; i < placement_.buckets.size(); ++i) {
      const Bucket& b = placement_.buckets[i];
      if (!b.frozen && spreads(b)) add_bucket(ActionKind::kWaitGather, i);
    }
  }

  /// Whether every rank holds a bucket whole and updates its own part.
  [[nodiscard]] bool spreads(const Bucket& b) const {
    const int zero = plan_.layout().zero_stage;
    return zero == 1 || zero == 2 || b.persistent;
  }

  const Plan& plan_;
  const StageMap& map_;
  const RankPlacement& placement_;
  int rank_;
  std::vector<PipelineSlot> slots_;
  size_t next_posted_[2] = {0, 0};   ///< Per direction: all receives before this slot are posted.
  std::vector<int> last_gradients_;  ///< Per virtual stage: the slot that completes its gradients.
  std::vector<Action> actions_;
  std::optional<ZeroActions> zero_;
};

int pending_sends(const Layout& l, int num_micro_batches) {
  if (!posts_ahead(l.schedule)) return 1;
  // One posted ahead and one to spare; and a group that is longer than the pipeline comes back to
  // the first rank before that rank has finished with it.
  constexpr int kAhead = 2;
  if (l.schedule != ScheduleKind::kInterleaved) return kAhead;
  return kAhead + std::max(0, micro_batch_group(l.pp, num_micro_batches) - l.pp);
}

}  // namespace

std::string_view to_string(ActionKind kind) {
  static constexpr std::string_view kNames[] = {"forward",
                                                "recompute",
                                                "backward",
                                                "backward_input",
                                                "backward_weight",
                                                "send",
                                                "post_recv",
                                                "recv",
                                                "sum_copies",
                                                "sum_tied",
                                                "reduce",
                                                "wait_reduce",
                                                "grad_norm",
                                                "optimizer",
                                                "gather",
                                                "wait_gather",
                                                "release"};
  return kNames[static_cast<int>(kind)];
}

std::string to_string(const Action& a, int stage) {
  std::string text = fmt::format("{}(s{}", to_string(a.kind), stage);
  if (a.virtual_stage >= 0 && a.virtual_stage != stage)
    text += fmt::format(",v{}", a.virtual_stage);
  if (a.micro_batch >= 0) text += fmt::format(",m{}", a.micro_batch);
  if (a.block_end > a.block_begin) text += fmt::format(",b{}-{}", a.block_begin, a.block_end - 1);
  if (a.bucket >= 0) text += fmt::format(",k{}", a.bucket);
  if (is_transfer(a.kind)) {
    text += a.direction == Direction::kForward ? ",forward" : ",backward";
  }
  return text + ")";
}

Program build_program(const Plan& plan) {
  return build_program(plan, stage_placements(plan), plan.num_micro_batches());
}

Program build_program(const Plan& plan,
                      const std::vector<RankPlacement>& placements,
                      int64_t num_micro_batches) {
  Program program;
  program.num_micro_batches = static_cast<int>(num_micro_batches);
  program.pending_sends = pending_sends(plan.layout(), program.num_micro_batches);
  for (int stage = 0; stage < plan.layout().pp; ++stage) {
    program.stages.push_back(
        RankProgram(plan, placements[static_cast<size_t>(stage)], stage, program.num_micro_batches)
            .build());
  }
  return program;
}

}  // namespace meshwright
