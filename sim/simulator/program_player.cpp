// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/program_player.h"

#include <algorithm>

namespace meshwright {
namespace {

// Event ids: step start, compute stream and communication stream of rank r, transfer t.
enum class Stream { kStart, kCompute, kComm, kTransfer };
constexpr int kStreams = 4;
int event_id(Stream stream, int index) { return index * kStreams + static_cast<int>(stream); }

}  // namespace

ProgramPlayer::ProgramPlayer(const Plan& plan,
                             const Program& program,
                             const StageCosts& costs,
                             EventLoop loop)
    : plan_(plan),
      program_(program),
      costs_(costs),
      loop_(std::move(loop)),
      num_micro_batches_(program.num_micro_batches),
      ranks_per_stage_(static_cast<double>(plan.world_size()) / plan.layout().pp),
      transfer_s_(costs.transfer().v) {
  const Mesh mesh(plan.layout());
  const auto channels = static_cast<size_t>(2 * plan.stage_map().size());
  transfers_.resize(channels * static_cast<size_t>(num_micro_batches_));
  under_way_.resize(channels * static_cast<size_t>(program.pending_sends));
  num_sent_.resize(channels);
  stages_.resize(program.stages.size());
  for (size_t s = 0; s < program.stages.size(); ++s) {
    Stage& stage = stages_[s];
    const size_t buckets = costs.placement(static_cast<int>(s)).buckets.size();
    stage.timeline.rank = mesh.rank({.pp = static_cast<int>(s)});
    stage.timeline.spans.reserve(program.stages[s].size());
    stage.comm_done.resize(2 * buckets);
    stage.comm_queue.reserve(2 * buckets);
  }
}

Timeline ProgramPlayer::play() {
  const int n = static_cast<int>(stages_.size());
  for (int s = 0; s < n; ++s)
    loop_.start(event_id(Stream::kStart, s), costs_.step_start(s).v, ranks_per_stage_);
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
      case Stream::kComm:
        finish_bucket(index);
        break;
      case Stream::kTransfer:
        finish_transfer(index);
        break;
    }
  }
  Timeline timeline;
  for (size_t s = 0; s < stages_.size(); ++s) {
    MW_CHECK(stages_[s].next == program_.stages[s].size(), "the program deadlocks");
    stages_[s].timeline.step_end_s = loop_.now();
    timeline.ranks.push_back(std::move(stages_[s].timeline));
  }
  return timeline;
}

void ProgramPlayer::advance(int rank) {
  Stage& stage = stages_[static_cast<size_t>(rank)];
  const std::vector<Action>& actions = program_.stages[static_cast<size_t>(rank)];
  while (stage.wait == Wait::kNothing && stage.next < actions.size()) {
    if (!begin(rank, actions[stage.next])) break;
  }
}

/// Begins the next action. Returns whether the stream goes on at once.
bool ProgramPlayer::begin(int rank, const Action& a) {
  Stage& stage = stages_[static_cast<size_t>(rank)];
  std::vector<Span>& spans = stage.timeline.spans;
  // A send that waited for the one before has its span already.
  if (spans.size() == stage.next)
    spans.push_back({.action = a, .start_s = loop_.now(), .end_s = loop_.now()});

  switch (a.kind) {
    case ActionKind::kSend:
      return begin_send(rank, a, spans.back());
    case ActionKind::kPostRecv:
      ++stage.next;
      post(transfer_index(a.peer_stage, a.direction, a.micro_batch));
      return true;
    case ActionKind::kRecv: {
      const int t = transfer_index(a.peer_stage, a.direction, a.micro_batch);
      if (transfers_[static_cast<size_t>(t)].done) {  // posted ahead, and here already
        ++stage.next;
        return true;
      }
      stage.wait = Wait::kTransfer;
      stage.waited_transfer = t;
      post(t);
      return false;
    }
    case ActionKind::kReduce:
    case ActionKind::kGather:
      stage.comm_done[comm_index(a.bucket, a.kind == ActionKind::kGather)] = 0;
      stage.comm_queue.push_back(&a);
      ++stage.next;
      if (stage.comm_queue.size() == stage.comm_front + 1) start_comm(rank);
      return true;
    case ActionKind::kWaitReduce:
    case ActionKind::kWaitGather:
      stage.wait = Wait::kBucket;
      stage.waited_comm = comm_index(a.bucket, a.kind == ActionKind::kWaitGather);
      if (stage.comm_done[stage.waited_comm] == 0) return false;
      end_wait_for_bucket(rank);
      return stage.wait == Wait::kNothing;
    case ActionKind::kRelease:
      ++stage.next;
      return true;
    case ActionKind::kSumTied:
    case ActionKind::kGradNorm:
      stage.wait = Wait::kPartners;
      join(rank, a);
      return false;
    default:
      break;
  }
  stage.wait = Wait::kWork;
  double duration = 0;
  if (walks_blocks(a.kind)) {
    stage.work = costs_.blocks(a);
    duration = stage.work.total().v;
  } else {
    duration = costs_.duration(a, rank).v;
  }
  loop_.start(event_id(Stream::kCompute, rank), duration, ranks_per_stage_);
  return false;
}

bool ProgramPlayer::begin_send(int rank, const Action& a, Span& span) {
  Stage& stage = stages_[static_cast<size_t>(rank)];
  const auto channel = static_cast<size_t>(2 * a.virtual_stage + static_cast<int>(a.direction));
  int& sent = num_sent_[channel];
  const int depth = program_.pending_sends;
  int& oldest =
      under_way_[channel * static_cast<size_t>(depth) + static_cast<size_t>(sent % depth)];
  if (sent >= depth && !transfers_[static_cast<size_t>(oldest)].done) {
    stage.wait = Wait::kEarlierSend;
    stage.waited_transfer = oldest;
    return false;
  }
  const int transfer = transfer_index(a.virtual_stage, a.direction, a.micro_batch);
  oldest = transfer;
  ++sent;
  span.end_s = loop_.now();
  ++stage.next;
  Transfer& t = transfers_[static_cast<size_t>(transfer)];
  t.sent = true;
  if (t.posted)
    loop_.start(event_id(Stream::kTransfer, transfer), transfer_s_, 2 * ranks_per_stage_);
  return true;
}

/// The receiver of `transfer` is ready. Both ends copy once it runs.
void ProgramPlayer::post(int transfer) {
  Transfer& t = transfers_[static_cast<size_t>(transfer)];
  if (t.posted) return;
  t.posted = true;
  if (t.sent) loop_.start(event_id(Stream::kTransfer, transfer), transfer_s_, 2 * ranks_per_stage_);
}

/// Ends the running action: closes its span and moves the stream on.
void ProgramPlayer::finish_span(int rank) {
  Stage& stage = stages_[static_cast<size_t>(rank)];
  Span& span = stage.timeline.spans.back();
  span.end_s = loop_.now();
  if (walks_blocks(span.action.kind)) {
    const double stretch = (span.end_s - span.start_s) / std::max(stage.work.total().v, 1e-300);
    span.compute_s = stage.work.compute.v * stretch;
    span.comm_s = stage.work.tp.v * stretch;
    span.cp_s = stage.work.cp.v * stretch;
    span.ep_s = stage.work.ep.v * stretch;
    span.offload_s = stage.work.offload.v * stretch;
  }
  stage.wait = Wait::kNothing;
  ++stage.next;
}

void ProgramPlayer::finish_bucket(int rank) {
  Stage& stage = stages_[static_cast<size_t>(rank)];
  const Action& done = *stage.comm_queue[stage.comm_front++];
  const size_t index = comm_index(done.bucket, done.kind == ActionKind::kGather);
  stage.comm_done[index] = 1;
  if (stage.comm_front < stage.comm_queue.size()) start_comm(rank);
  if (stage.wait == Wait::kBucket && stage.waited_comm == index) {
    end_wait_for_bucket(rank);
    if (stage.wait == Wait::kNothing) advance(rank);
  }
}

void ProgramPlayer::end_wait_for_bucket(int rank) {
  Stage& stage = stages_[static_cast<size_t>(rank)];
  const Action& a = program_.stages[static_cast<size_t>(rank)][stage.next];
  const double rest = costs_.duration(a, rank).v;
  if (rest > 0) {
    stage.wait = Wait::kWork;
    loop_.start(event_id(Stream::kCompute, rank), rest, ranks_per_stage_);
  } else {
    finish_span(rank);
  }
}

void ProgramPlayer::finish_transfer(int transfer) {
  transfers_[static_cast<size_t>(transfer)].done = true;
  const int channel = transfer / num_micro_batches_;
  const VirtualStage& sender = plan_.stage_map()[channel / 2];
  const bool forward = channel % 2 == static_cast<int>(Direction::kForward);
  const int receiver = plan_.stage_map()[forward ? sender.next : sender.previous].rank;
  resume_after_transfer(std::min(sender.rank, receiver), transfer);
  resume_after_transfer(std::max(sender.rank, receiver), transfer);
}

void ProgramPlayer::resume_after_transfer(int rank, int transfer) {
  Stage& stage = stages_[static_cast<size_t>(rank)];
  if (stage.waited_transfer != transfer) return;
  stage.waited_transfer = -1;
  if (stage.wait == Wait::kTransfer) finish_span(rank);
  stage.wait = Wait::kNothing;
  advance(rank);
}

void ProgramPlayer::start_comm(int rank) {
  const Stage& stage = stages_[static_cast<size_t>(rank)];
  const Seconds t = costs_.behind(*stage.comm_queue[stage.comm_front], rank);
  loop_.start(event_id(Stream::kComm, rank), t.v, ranks_per_stage_);
}

void ProgramPlayer::join(int rank, const Action& a) {
  const bool tie = a.kind == ActionKind::kSumTied;
  std::vector<int>& arrived = tie ? at_tie_ : at_norm_;
  arrived.push_back(rank);
  const size_t partners = tie ? 2 : stages_.size();
  if (arrived.size() < partners) return;
  for (const int r : arrived) {
    const Action& own =
        program_.stages[static_cast<size_t>(r)][stages_[static_cast<size_t>(r)].next];
    loop_.start(event_id(Stream::kCompute, r), costs_.duration(own, r).v, ranks_per_stage_);
  }
}

}  // namespace meshwright
