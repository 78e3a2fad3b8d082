// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/program_player.h"

#include <algorithm>

namespace meshwright {
namespace {

// Event ids: step start, compute stream and communication stream of stage s, transfer t.
enum class Stream { kStart, kCompute, kComm, kTransfer };
constexpr int kStreams = 4;
int event_id(Stream stream, int index) { return index * kStreams + static_cast<int>(stream); }

bool uses_comm_stream(ActionKind k) { return k == ActionKind::kReduce || k == ActionKind::kGather; }
bool waits_for_bucket(ActionKind k) {
  return k == ActionKind::kWaitReduce || k == ActionKind::kWaitGather;
}

}  // namespace

ProgramPlayer::ProgramPlayer(const Plan& plan,
                             const Program& program,
                             const StageCosts& costs,
                             EventLoop loop)
    : plan_(plan),
      program_(program),
      costs_(costs),
      loop_(std::move(loop)),
      ranks_per_stage_(static_cast<double>(plan.world_size()) / plan.layout().pp) {
  const Mesh mesh(plan.layout());
  for (size_t s = 0; s < program.stages.size(); ++s) {
    Stage stage;
    stage.timeline.rank = mesh.rank({.pp = static_cast<int>(s)});
    stage.timeline.spans.reserve(program.stages[s].size());
    stage.comm_done.resize(costs.placement(static_cast<int>(s)).buckets.size());
    stages_.push_back(std::move(stage));
  }
}

Timeline ProgramPlayer::play() {
  const int n = static_cast<int>(stages_.size());
  for (int s = 0; s < n; ++s)
    loop_.start(event_id(Stream::kStart, s), costs_.step_start(s).v, weight());
  while (const auto id = loop_.next()) {
    const int index = *id / kStreams;
    switch (static_cast<Stream>(*id % kStreams)) {
      case Stream::kStart:
        advance(index);
        break;
      case Stream::kCompute:
        finish_span(index);
        advance(index);
        break;
      case Stream::kComm: {
        Stage& stage = stages_[static_cast<size_t>(index)];
        const int bucket = stage.comm_queue.front();
        stage.comm_queue.pop_front();
        stage.comm_done[static_cast<size_t>(bucket)] = true;
        if (!stage.comm_queue.empty()) start_comm(index);
        if (stage.wait == Wait::kBucket && stage.waited_bucket == bucket) {
          finish_span(index);
          advance(index);
        }
        break;
      }
      case Stream::kTransfer:
        transfers_[static_cast<size_t>(index)].done = true;
        for (int s = 0; s < n; ++s) {
          Stage& stage = stages_[static_cast<size_t>(s)];
          if (stage.waited_transfer != index) continue;
          stage.waited_transfer = -1;
          if (stage.wait == Wait::kTransfer) finish_span(s);
          stage.wait = Wait::kNothing;
          advance(s);
        }
        break;
    }
  }
  Timeline timeline;
  for (Stage& s : stages_) {
    MW_CHECK(s.next == program_.stages[static_cast<size_t>(&s - stages_.data())].size(),
             "the program deadlocks");
    s.timeline.step_end_s = loop_.now();
    timeline.ranks.push_back(std::move(s.timeline));
  }
  return timeline;
}

void ProgramPlayer::advance(int index) {
  Stage& stage = stages_[static_cast<size_t>(index)];
  const std::vector<Action>& actions = program_.stages[static_cast<size_t>(index)];
  while (stage.wait == Wait::kNothing && stage.next < actions.size()) {
    if (!begin(index, actions[stage.next])) break;
  }
}

/// Begins the next action. Returns whether the stream goes on at once.
bool ProgramPlayer::begin(int index, const Action& a) {
  Stage& stage = stages_[static_cast<size_t>(index)];
  std::vector<Span>& spans = stage.timeline.spans;
  const bool resumed =
      !spans.empty() && spans.size() == stage.next + 1;  // a send that waited for the one before
  if (!resumed) spans.push_back({.action = a, .start_s = loop_.now(), .end_s = loop_.now()});
  Span& span = spans.back();

  if (a.kind == ActionKind::kSend) {
    int& earlier = stage.last_send[static_cast<int>(a.direction)];
    if (earlier >= 0 && !transfers_[static_cast<size_t>(earlier)].done) {
      stage.wait = Wait::kEarlierSend;
      stage.waited_transfer = earlier;
      return false;
    }
    const int t = transfer_index(index, a.direction, a.micro_batch);
    transfers_[static_cast<size_t>(t)].sent = true;
    earlier = t;
    span.end_s = loop_.now();
    ++stage.next;
    try_transfer(t);
    return true;
  }
  if (a.kind == ActionKind::kRecv) {
    const int from = a.direction == Direction::kForward ? index - 1 : index + 1;
    const int t = transfer_index(from, a.direction, a.micro_batch);
    transfers_[static_cast<size_t>(t)].posted = true;
    stage.wait = Wait::kTransfer;
    stage.waited_transfer = t;
    try_transfer(t);
    return false;
  }
  if (uses_comm_stream(a.kind)) {
    stage.comm_done[static_cast<size_t>(a.bucket)] = false;
    stage.comm_queue.push_back(a.bucket);
    ++stage.next;
    if (stage.comm_queue.size() == 1) start_comm(index);
    return true;
  }
  if (waits_for_bucket(a.kind)) {
    if (stage.comm_done[static_cast<size_t>(a.bucket)]) {
      ++stage.next;
      return true;
    }
    stage.wait = Wait::kBucket;
    stage.waited_bucket = a.bucket;
    return false;
  }
  if (a.kind == ActionKind::kSumTied || a.kind == ActionKind::kGradNorm) {
    stage.wait = Wait::kPartners;
    join(index, a.kind);
    return false;
  }
  stage.wait = Wait::kWork;
  loop_.start(event_id(Stream::kCompute, index), costs_.duration(a, index).v, weight());
  return false;
}

/// Ends the running action: closes its span and moves the stream on.
void ProgramPlayer::finish_span(int index) {
  Stage& stage = stages_[static_cast<size_t>(index)];
  Span& span = stage.timeline.spans.back();
  span.end_s = loop_.now();
  const ActionKind kind = span.action.kind;
  if (kind == ActionKind::kForward || kind == ActionKind::kRecompute ||
      kind == ActionKind::kBackward) {
    const ListCost cost = costs_.blocks(span.action);
    const double stretch = (span.end_s - span.start_s) / std::max(cost.total().v, 1e-300);
    span.compute_s = cost.compute.v * stretch;
    span.comm_s = cost.comm.v * stretch;
  }
  stage.wait = Wait::kNothing;
  ++stage.next;
}

void ProgramPlayer::start_comm(int index) {
  const Stage& stage = stages_[static_cast<size_t>(index)];
  const int bucket = stage.comm_queue.front();
  const std::vector<Action>& actions = program_.stages[static_cast<size_t>(index)];
  // The phase is that of the latest start in the list: gathers begin after all reductions have
  // ended.
  bool gather = false;
  for (size_t i = stage.next; i-- > 0;) {
    if (!uses_comm_stream(actions[i].kind)) continue;
    gather = actions[i].kind == ActionKind::kGather;
    break;
  }
  const Seconds t = gather ? costs_.gather(index, bucket) : costs_.reduce(index, bucket);
  loop_.start(event_id(Stream::kComm, index), t.v, weight());
}

int ProgramPlayer::transfer_index(int from, Direction d, int micro_batch) {
  const auto [it, inserted] = transfer_ids_.try_emplace({from, static_cast<int>(d), micro_batch},
                                                        static_cast<int>(transfers_.size()));
  if (inserted) transfers_.emplace_back();
  return it->second;
}

void ProgramPlayer::try_transfer(int index) {
  const Transfer& t = transfers_[static_cast<size_t>(index)];
  if (!t.sent || !t.posted) return;
  loop_.start(
      event_id(Stream::kTransfer, index), costs_.transfer().v, 2 * weight());  // both ends copy
}

void ProgramPlayer::join(int index, ActionKind kind) {
  std::vector<int>& arrived = joined_[kind];
  arrived.push_back(index);
  const size_t partners = kind == ActionKind::kSumTied ? 2 : stages_.size();
  if (arrived.size() < partners) return;
  for (const int s : arrived) {
    const Action& a = program_.stages[static_cast<size_t>(s)][stages_[static_cast<size_t>(s)].next];
    loop_.start(event_id(Stream::kCompute, s), costs_.duration(a, s).v, weight());
  }
}

}  // namespace meshwright
