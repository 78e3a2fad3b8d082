// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/program_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/schedule/exchange_check.h"

namespace meshwright {
namespace {

class ProgramCheck {
 public:
  ProgramCheck(const Plan& plan, const Program& program)
      : plan_(plan),
        map_(plan.stage_map()),
        program_(program),
        blocks_(num_blocks(plan.model())),
        m_(program.num_micro_batches),
        passes_(static_cast<size_t>(map_.size()) * static_cast<size_t>(blocks_ * m_)) {}

  std::optional<Error> run() {
    if (program_.stages.size() != static_cast<size_t>(plan_.layout().pp))
      return defect(
          "has {} lists for {} pipeline ranks", program_.stages.size(), plan_.layout().pp);
    for (size_t r = 0; r < program_.stages.size(); ++r) {
      if (auto e = check_order(static_cast<int>(r))) return e;
    }
    if (auto e = check_complete()) return e;
    if (auto e = check_channels()) return e;
    return check_deadlock();
  }

 private:
  /// What has happened to one block of one micro-batch on one virtual stage.
  struct Passes {
    int forward = 0, recompute = 0, input = 0, weight = 0;
  };

  template <class... Args>
  Error defect(fmt::format_string<Args...> text, Args&&... args) const {
    return {.where = "program",
            .field = "schedule",
            .value = summary(plan_.layout()),
            .rule = fmt::format(text, std::forward<Args>(args)...),
            .remedy = "its generator is wrong"};
  }
  Passes& passes(int stage, int block, int mb) {
    return passes_[(static_cast<size_t>(stage) * static_cast<size_t>(blocks_) +
                    static_cast<size_t>(block)) *
                       static_cast<size_t>(m_) +
                   static_cast<size_t>(mb)];
  }
  [[nodiscard]] size_t channel(int sender, Direction d) const {
    return static_cast<size_t>(2 * sender + static_cast<int>(d));
  }
  [[nodiscard]] size_t message(int sender, Direction d, int mb) const {
    return channel(sender, d) * static_cast<size_t>(m_) + static_cast<size_t>(mb);
  }

  /// The list of one rank: does each action come after what it reads on this rank?
  std::optional<Error> check_order(int rank) {
    received_.assign(static_cast<size_t>(2 * map_.size() * m_), false);
    for (const Action& a : program_.stages[static_cast<size_t>(rank)]) {
      if (!walks_blocks(a.kind) && !is_transfer(a.kind)) continue;
      const bool known = a.virtual_stage >= 0 && a.virtual_stage < map_.size() &&
                         map_[a.virtual_stage].rank == rank && a.micro_batch >= 0 &&
                         a.micro_batch < m_;
      if (!known) return defect("{} names no stage of rank {}", to_string(a, rank), rank);
      const bool ok = is_transfer(a.kind) ? check_transfer(a) : check_walk(a);
      if (!ok) return defect("{} comes before what it reads", to_string(a, rank));
    }
    return std::nullopt;
  }

  bool check_transfer(const Action& a) {
    const VirtualStage& v = map_[a.virtual_stage];
    const bool forward = a.direction == Direction::kForward;
    const int peer = forward == (a.kind == ActionKind::kSend) ? v.next : v.previous;
    if (peer < 0 || a.peer_stage != peer || a.peer != map_[peer].rank) return false;
    if (a.kind == ActionKind::kRecv)
      received_[message(a.virtual_stage, a.direction, a.micro_batch)] = true;
    if (a.kind != ActionKind::kSend) return true;
    return forward ? passes(a.virtual_stage, v.block_end - 1, a.micro_batch).forward == 1
                   : passes(a.virtual_stage, v.block_begin, a.micro_batch).input == 1;
  }

  /// Whether a block's input (forward) or output gradient (backward) is on this rank.
  bool available(int stage, Direction d, int block, int mb) {
    const VirtualStage& v = map_[stage];
    const bool forward = d == Direction::kForward;
    if (forward ? block == 0 : block + 1 == blocks_) return true;
    const bool inside = forward ? block > v.block_begin : block + 1 < v.block_end;
    const int from = inside ? stage : (forward ? v.previous : v.next);
    if (map_[from].rank != v.rank) return received_[message(stage, d, mb)];
    return forward ? passes(from, block - 1, mb).forward == 1
                   : passes(from, block + 1, mb).input == 1;
  }

  bool check_walk(const Action& a) {
    const VirtualStage& v = map_[a.virtual_stage];
    if (a.block_begin < v.block_begin || a.block_end > v.block_end || a.block_begin >= a.block_end)
      return false;
    const bool forward = a.kind == ActionKind::kForward;
    for (int i = 0; i < a.block_end - a.block_begin; ++i) {
      const int b = forward ? a.block_begin + i : a.block_end - 1 - i;
      Passes& p = passes(a.virtual_stage, b, a.micro_batch);
      const Direction d = forward ? Direction::kForward : Direction::kBackward;
      const bool recomputed = !plan_.recomputes(b) || p.recompute == 1;
      switch (a.kind) {
        case ActionKind::kForward:
          if (!available(a.virtual_stage, d, b, a.micro_batch)) return false;
          ++p.forward;
          break;
        case ActionKind::kRecompute:
          if (p.forward != 1) return false;
          ++p.recompute;
          break;
        case ActionKind::kBackwardWeight:
          if (p.input != 1) return false;
          ++p.weight;
          break;
        default:
          if (p.forward != 1 || !recomputed || !available(a.virtual_stage, d, b, a.micro_batch))
            return false;
          ++p.input;
          if (a.kind == ActionKind::kBackward) ++p.weight;
      }
    }
    return true;
  }

  std::optional<Error> check_complete() {
    for (int b = 0; b < blocks_; ++b) {
      for (int mb = 0; mb < m_; ++mb) {
        Passes sum;
        for (int s = 0; s < map_.size(); ++s) {
          const Passes& p = passes(s, b, mb);
          sum.forward += p.forward;
          sum.input += p.input;
          sum.weight += p.weight;
        }
        if (sum.forward != 1 || sum.input != 1 || sum.weight != 1)
          return defect(
              "block {} of micro-batch {} goes {} times forward, {} times backward for its input "
              "and "
              "{} times for its weights",
              b,
              mb,
              sum.forward,
              sum.input,
              sum.weight);
      }
    }
    return std::nullopt;
  }

  std::optional<Error> check_channels() {
    const auto channels = static_cast<size_t>(2 * map_.size());
    std::vector<std::vector<int>> sent(channels), posted(channels), received(channels);
    for (const std::vector<Action>& list : program_.stages) {
      for (const Action& a : list) {
        if (a.kind == ActionKind::kSend)
          sent[channel(a.virtual_stage, a.direction)].push_back(a.micro_batch);
        if (a.kind == ActionKind::kRecv)
          received[channel(a.peer_stage, a.direction)].push_back(a.micro_batch);
        if (a.kind == ActionKind::kPostRecv)
          posted[channel(a.peer_stage, a.direction)].push_back(a.micro_batch);
      }
    }
    for (size_t c = 0; c < channels; ++c) {
      const char* what = c % 2 == 0 ? "outputs" : "input gradients";
      for (size_t i = 0; i < std::max(sent[c].size(), received[c].size()); ++i) {
        const int s = i < sent[c].size() ? sent[c][i] : -1;
        const int r = i < received[c].size() ? received[c][i] : -1;
        if (s != r)
          return defect(
              "of the {} of virtual stage {}, number {} is sent for micro-batch {} and "
              "received for {} (-1: not at all)",
              what,
              c / 2,
              i,
              s,
              r);
      }
      if (!std::is_sorted(posted[c].begin(), posted[c].end()))
        return defect(
            "receives of the {} of virtual stage {} are posted out of order", what, c / 2);
    }
    return std::nullopt;
  }

  // Deadlock: the lists are walked without time.

  std::optional<Error> check_deadlock() {
    const size_t n = program_.stages.size();
    next_.assign(n, 0);
    ready_.assign(static_cast<size_t>(2 * map_.size() * m_), 0);
    sent_.assign(static_cast<size_t>(2 * map_.size()), {});
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t r = 0; r < n; ++r) {
        while (next_[r] < program_.stages[r].size() && waits_for(r) < 0) {
          take(program_.stages[r][next_[r]]);
          ++next_[r];
          progress = true;
        }
      }
    }
    for (size_t r = 0; r < n; ++r) {
      if (next_[r] < program_.stages[r].size()) return cycle_from(r);
    }
    return std::nullopt;
  }

  enum Ready : char { kSent = 1, kPosted = 2, kDone = kSent | kPosted };

  /// The rank that `rank`'s next action waits for; -1 when it can be taken.
  int waits_for(size_t rank) {
    const Action& a = program_.stages[rank][next_[rank]];
    if (a.kind == ActionKind::kRecv) {
      char& state = ready_[message(a.peer_stage, a.direction, a.micro_batch)];
      state |= kPosted;
      return (state & kSent) != 0 ? -1 : a.peer;
    }
    if (a.kind == ActionKind::kSend) {
      const std::vector<int>& sent = sent_[channel(a.virtual_stage, a.direction)];
      const auto depth = static_cast<size_t>(program_.pending_sends);
      if (sent.size() < depth) return -1;
      const int oldest = sent[sent.size() - depth];
      return ready_[message(a.virtual_stage, a.direction, oldest)] == kDone ? -1 : a.peer;
    }
    if (a.kind == ActionKind::kSumTied || a.kind == ActionKind::kGradNorm) {
      for (size_t r = 0; r < program_.stages.size(); ++r) {
        if (takes_part(r, a.kind) && !arrived(r, a.kind)) return static_cast<int>(r);
      }
    }
    return -1;
  }
  [[nodiscard]] bool takes_part(size_t rank, ActionKind kind) const {
    const auto& list = program_.stages[rank];
    return std::any_of(list.begin(), list.end(), [&](const Action& a) { return a.kind == kind; });
  }
  /// A rank stands at the joint action, or has passed it.
  [[nodiscard]] bool arrived(size_t rank, ActionKind kind) const {
    const auto& list = program_.stages[rank];
    const auto at =
        std::find_if(list.begin(), list.end(), [&](const Action& a) { return a.kind == kind; });
    return static_cast<size_t>(at - list.begin()) <= next_[rank];
  }

  void take(const Action& a) {
    if (a.kind == ActionKind::kSend) {
      ready_[message(a.virtual_stage, a.direction, a.micro_batch)] |= kSent;
      sent_[channel(a.virtual_stage, a.direction)].push_back(a.micro_batch);
    }
    if (a.kind == ActionKind::kPostRecv)
      ready_[message(a.peer_stage, a.direction, a.micro_batch)] |= kPosted;
  }

  Error cycle_from(size_t start) {
    std::vector<bool> seen(program_.stages.size());
    std::string chain;
    size_t r = start;
    while (!seen[r]) {
      seen[r] = true;
      if (next_[r] == program_.stages[r].size())
        return defect("ranks wait for ever: {}rank {}, which has ended", chain, r);
      chain += fmt::format("rank {} at {} waits for ",
                           r,
                           to_string(program_.stages[r][next_[r]], static_cast<int>(r)));
      r = static_cast<size_t>(waits_for(r));
    }
    return defect("ranks wait for each other: {}rank {}", chain, r);
  }

  const Plan& plan_;
  const StageMap& map_;
  const Program& program_;
  int blocks_;
  int m_;
  std::vector<Passes> passes_;  ///< [virtual stage][block][micro-batch].
  std::vector<bool> received_;  ///< Of the rank at hand: [receiving stage, direction][micro-batch].
  std::vector<size_t> next_;    ///< Per rank.
  std::vector<char> ready_;     ///< Per message, by its sender.
  std::vector<std::vector<int>> sent_;  ///< Per channel: micro-batches.
};

}  // namespace

std::optional<Error> check_program(const Plan& plan, const Program& program) {
  if (auto e = ProgramCheck(plan, program).run()) return e;
  return check_exchanges(plan, stage_placements(plan), program);
}

}  // namespace meshwright
