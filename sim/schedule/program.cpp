// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace meshwright {
namespace {

class StageProgram {
 public:
  StageProgram(const Plan& plan, const RankPlacement& placement, int stage, int num_micro_batches)
      : plan_(plan), placement_(placement), stage_(stage), m_(num_micro_batches) {
    std::tie(begin_, end_) = plan.blocks_of_stage(stage);
  }

  std::vector<Action> build() {
    const Layout& l = plan_.layout();
    for (const PipelineSlot& slot : pipeline_order(l.schedule, stage_, l.pp, m_)) {
      slot.direction == Direction::kForward ? forward(slot.micro_batch)
                                            : backward(slot.micro_batch);
    }
    finish_gradients();
    return std::move(actions_);
  }

 private:
  [[nodiscard]] bool first() const { return stage_ == 0; }
  [[nodiscard]] bool last() const { return stage_ + 1 == plan_.layout().pp; }

  Action& add(ActionKind kind) { return actions_.emplace_back(Action{.kind = kind}); }
  void add_blocks(ActionKind kind, int mb, int begin, int end) {
    Action& a = add(kind);
    a.micro_batch = mb;
    a.block_begin = begin;
    a.block_end = end;
  }
  void transfer(ActionKind kind, Direction d, int mb) {
    Action& a = add(kind);
    a.direction = d;
    a.micro_batch = mb;
  }
  void add_bucket(ActionKind kind, size_t bucket) { add(kind).bucket = static_cast<int>(bucket); }

  void forward(int mb) {
    if (!first()) transfer(ActionKind::kRecv, Direction::kForward, mb);
    add_blocks(ActionKind::kForward, mb, begin_, end_);
    if (!last()) transfer(ActionKind::kSend, Direction::kForward, mb);
  }

  void backward(int mb) {
    if (!last()) transfer(ActionKind::kRecv, Direction::kBackward, mb);
    const bool recompute = plan_.layout().recompute != Recompute::kNone;
    const bool reduce_now =
        mb + 1 == m_;  // the last gradients of the step: their buckets can leave
    if (!recompute && !reduce_now) {
      add_blocks(ActionKind::kBackward, mb, begin_, end_);
    } else {
      for (int b = end_ - 1; b >= begin_; --b) {
        const bool decoder = b > 0 && b + 1 < num_blocks(plan_.model());
        if (recompute && decoder) add_blocks(ActionKind::kRecompute, mb, b, b + 1);
        add_blocks(ActionKind::kBackward, mb, b, b + 1);
        if (reduce_now) reduce_block(b);
      }
    }
    if (!first()) transfer(ActionKind::kSend, Direction::kBackward, mb);
  }

  void reduce_block(int block) {
    for (size_t i = 0; i < placement_.buckets.size(); ++i) {
      if (placement_.buckets[i].block == block && !placement_.buckets[i].tied) reduce_bucket(i);
    }
  }

  void reduce_bucket(size_t i) {
    if (!placement_.buckets[i].partial.empty()) add_bucket(ActionKind::kSumCopies, i);
    if (plan_.layout().dp() > 1) add_bucket(ActionKind::kReduce, i);
  }

  void finish_gradients() {
    const Layout& l = plan_.layout();
    // Ties are summed before sharding, and after all other buckets have left: the other stage may
    // be late.
    for (size_t i = 0; i < placement_.buckets.size(); ++i) {
      if (!placement_.buckets[i].tied) continue;
      add_bucket(ActionKind::kSumTied, i);
      reduce_bucket(i);
    }
    if (l.dp() > 1) {
      for (size_t i = placement_.buckets.size(); i-- > 0;) add_bucket(ActionKind::kWaitReduce, i);
    }
    add(ActionKind::kGradNorm);
    for (size_t i = 0; i < placement_.buckets.size(); ++i) {
      add_bucket(ActionKind::kOptimizer, i);
      if (l.zero_stage >= 1) add_bucket(ActionKind::kGather, i);
    }
    if (l.zero_stage >= 1) {
      for (size_t i = 0; i < placement_.buckets.size(); ++i) add_bucket(ActionKind::kWaitGather, i);
    }
  }

  const Plan& plan_;
  const RankPlacement& placement_;
  int stage_;
  int m_;
  int begin_ = 0;
  int end_ = 0;
  std::vector<Action> actions_;
};

}  // namespace

std::string_view to_string(ActionKind kind) {
  static constexpr std::string_view kNames[] = {"forward",
                                                "recompute",
                                                "backward",
                                                "send",
                                                "recv",
                                                "sum_copies",
                                                "sum_tied",
                                                "reduce",
                                                "wait_reduce",
                                                "grad_norm",
                                                "optimizer",
                                                "gather",
                                                "wait_gather"};
  return kNames[static_cast<int>(kind)];
}

std::string to_string(const Action& a, int stage) {
  std::string text = fmt::format("{}(s{}", to_string(a.kind), stage);
  if (a.micro_batch >= 0) text += fmt::format(",m{}", a.micro_batch);
  if (a.block_end > a.block_begin) text += fmt::format(",b{}-{}", a.block_begin, a.block_end - 1);
  if (a.bucket >= 0) text += fmt::format(",k{}", a.bucket);
  if (a.kind == ActionKind::kSend || a.kind == ActionKind::kRecv) {
    text += a.direction == Direction::kForward ? ",forward" : ",backward";
  }
  return text + ")";
}

std::vector<PipelineSlot> pipeline_order(ScheduleKind kind, int stage, int num_stages, int m) {
  std::vector<PipelineSlot> order;
  order.reserve(static_cast<size_t>(2 * m));
  if (kind == ScheduleKind::kGpipe) {
    for (int i = 0; i < m; ++i) order.push_back({Direction::kForward, i});
    for (int i = 0; i < m; ++i) order.push_back({Direction::kBackward, i});
    return order;
  }
  // 1F1B: p - 1 - r warm-up forwards, then one forward and one backward in turn (arXiv:2104.04473).
  const int warmup = std::min(m, num_stages - 1 - stage);
  for (int i = 0; i < warmup; ++i) order.push_back({Direction::kForward, i});
  for (int i = warmup; i < m; ++i) {
    order.push_back({Direction::kForward, i});
    order.push_back({Direction::kBackward, i - warmup});
  }
  for (int i = m - warmup; i < m; ++i) order.push_back({Direction::kBackward, i});
  return order;
}

Program build_program(const Plan& plan) {
  return build_program(plan, stage_placements(plan), plan.num_micro_batches());
}

Program build_program(const Plan& plan,
                      const std::vector<RankPlacement>& placements,
                      int64_t num_micro_batches) {
  Program program;
  program.num_micro_batches = static_cast<int>(num_micro_batches);
  for (int stage = 0; stage < plan.layout().pp; ++stage) {
    program.stages.push_back(
        StageProgram(plan, placements[static_cast<size_t>(stage)], stage, program.num_micro_batches)
            .build());
  }
  return program;
}

}  // namespace meshwright
