// SPDX-License-Identifier: Apache-2.0
#include "sim/report/step_report.h"

#include <algorithm>

#include "sim/report/report_json.h"

namespace meshwright {
namespace {

const RankTimeline* find_rank(const Timeline& timeline, int rank) {
  for (const RankTimeline& r : timeline.ranks) {
    if (r.rank == rank) return &r;
  }
  return nullptr;
}

/// When the sends that a rank's receives wait for were started.
class SendTimes {
 public:
  SendTimes(const Timeline& timeline, const Mesh& mesh, const RankTimeline& own) {
    std::vector<int> peers;
    for (const Span& s : own.spans) {
      if (s.action.kind != ActionKind::kRecv) continue;
      num_stages_ = std::max(num_stages_, s.action.peer_stage + 1);
      num_micro_batches_ = std::max(num_micro_batches_, s.action.micro_batch + 1);
      if (std::find(peers.begin(), peers.end(), s.action.peer) == peers.end())
        peers.push_back(s.action.peer);
    }
    start_s_.resize(static_cast<size_t>(2 * num_stages_) * static_cast<size_t>(num_micro_batches_));
    for (const int peer : peers) {
      const RankTimeline* other = find_rank(timeline, mesh.rank_at_stage(own.rank, peer));
      if (other == nullptr) continue;
      for (const Span& s : other->spans) {
        const Action& a = s.action;
        if (a.kind == ActionKind::kSend && a.virtual_stage < num_stages_ &&
            a.micro_batch < num_micro_batches_)
          start_s_[index(a.direction, a.virtual_stage, a.micro_batch)] = s.start_s;
      }
    }
  }

  /// Nothing where the timeline has no such send.
  [[nodiscard]] std::optional<double> of(const Action& recv) const {
    return start_s_[index(recv.direction, recv.peer_stage, recv.micro_batch)];
  }

 private:
  [[nodiscard]] size_t index(Direction d, int stage, int micro_batch) const {
    return static_cast<size_t>(2 * stage + static_cast<int>(d)) *
               static_cast<size_t>(num_micro_batches_) +
           static_cast<size_t>(micro_batch);
  }

  int num_stages_ = 0;
  int num_micro_batches_ = 0;
  std::vector<std::optional<double>> start_s_;
};

/// Splits a wait into the part before `ready` (the peer was late: bubble) and the rest (the
/// transfer: exposed).
void add_wait(StepReport& report, const Span& span, double ready, Term exposed) {
  const double late = std::clamp(ready - span.start_s, 0.0, span.end_s - span.start_s);
  report[Term::kBubble] += Seconds{late};
  report[exposed] += Seconds{span.end_s - span.start_s - late};
}

/// When the other ranks that take part in a joint action arrived at it, at the latest.
double latest_start(const Timeline& timeline, ActionKind kind) {
  double latest = 0;
  for (const RankTimeline& r : timeline.ranks) {
    for (const Span& s : r.spans) {
      if (s.action.kind == kind) latest = std::max(latest, s.start_s);
    }
  }
  return latest;
}

}  // namespace

std::string_view key(Term term) {
  static constexpr std::string_view kKeys[kNumTerms] = {"compute_s",
                                                        "recompute_s",
                                                        "exposed_tp_s",
                                                        "exposed_cp_s",
                                                        "exposed_ep_s",
                                                        "exposed_pp_s",
                                                        "exposed_dp_s",
                                                        "bubble_s",
                                                        "optimizer_s",
                                                        "host_s",
                                                        "other_s"};
  return kKeys[static_cast<size_t>(term)];
}

std::string_view key(MemoryTerm term) {
  static constexpr std::string_view kKeys[kNumMemoryTerms] = {"weights_bytes",
                                                              "gradients_bytes",
                                                              "optimizer_bytes",
                                                              "activations_bytes",
                                                              "gathered_bytes",
                                                              "other_bytes"};
  return kKeys[static_cast<size_t>(term)];
}

StepReport terms_of_rank(const Timeline& timeline, const Mesh& mesh, int rank) {
  const RankTimeline* own = find_rank(timeline, rank);
  MW_CHECK(own != nullptr, "no timeline of rank " + std::to_string(rank));
  StepReport report;
  report.step_time = Seconds{own->step_end_s - own->step_start_s};
  const SendTimes sends(timeline, mesh, *own);
  double covered = 0;
  for (const Span& s : own->spans) {
    const Seconds duration{s.end_s - s.start_s};
    covered += duration.v;
    switch (s.action.kind) {
      case ActionKind::kForward:
      case ActionKind::kBackward:
      case ActionKind::kBackwardInput:
      case ActionKind::kBackwardWeight:
      case ActionKind::kRecompute:
        report[s.action.kind == ActionKind::kRecompute ? Term::kRecompute : Term::kCompute] +=
            Seconds{s.compute_s};
        report[Term::kExposedTp] += Seconds{s.comm_s};
        report[Term::kExposedCp] += Seconds{s.cp_s};
        report[Term::kExposedEp] += Seconds{s.ep_s};
        report[Term::kOther] += Seconds{s.offload_s};
        report[Term::kHost] +=
            duration - Seconds{s.compute_s + s.comm_s + s.cp_s + s.ep_s + s.offload_s};
        break;
      case ActionKind::kRecv:
        add_wait(report, s, sends.of(s.action).value_or(s.start_s), Term::kExposedPp);
        break;
      case ActionKind::kPostRecv:
      case ActionKind::kSend:
        report[Term::kExposedPp] += duration;
        break;
      case ActionKind::kSumTied:
        add_wait(report, s, latest_start(timeline, s.action.kind), Term::kExposedPp);
        break;
      case ActionKind::kSumCopies:
        report[Term::kExposedTp] += duration;
        break;
      case ActionKind::kReduce:
      case ActionKind::kWaitReduce:
      case ActionKind::kGather:
      case ActionKind::kWaitGather:
      case ActionKind::kRelease:
        report[Term::kExposedDp] += duration;
        break;
      case ActionKind::kGradNorm:
        add_wait(report, s, latest_start(timeline, s.action.kind), Term::kOther);
        break;
      case ActionKind::kOptimizer:
        report[Term::kOptimizer] += duration;
        break;
    }
  }
  report[Term::kHost] += Seconds{report.step_time.v - covered};
  return report;
}

StepReport terms_of_slowest_rank(const Timeline& timeline, const Mesh& mesh) {
  MW_CHECK(!timeline.ranks.empty());
  const auto slowest = std::max_element(
      timeline.ranks.begin(), timeline.ranks.end(), [](const auto& a, const auto& b) {
        return a.step_end_s - a.step_start_s < b.step_end_s - b.step_start_s;
      });
  return terms_of_rank(timeline, mesh, slowest->rank);
}

std::string to_json_text(const StepReport& report) { return report_to_json(report).dump(2); }

Result<StepReport> parse_step_report(std::string_view text, const std::string& origin) {
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, origin));
  return report_from_json(json, origin, "");
}

}  // namespace meshwright
