// SPDX-License-Identifier: Apache-2.0
// What the step loses: utilisation, communication, bubble, host.
#include <fmt/format.h>

#include <algorithm>

#include "sim/advice/checklist.h"
#include "sim/advice/flop_count.h"
#include "sim/advice/rule_checks.h"
#include "sim/core/text.h"

namespace meshwright {
namespace {

constexpr Term kExposedAxes[] = {
    Term::kExposedTp, Term::kExposedCp, Term::kExposedEp, Term::kExposedPp, Term::kExposedDp};

}  // namespace

void Checklist::utilisation() {
  const double mfu = utilization(plan_, cost_, report_.step_time, FlopDefinition::kModel).mfu;
  Finding f{.id = "mfu",
            .value = mfu,
            .threshold = kAimedMfu,
            .text = fmt::format("MFU {:.1f} %: {} (model FLOP; aim above {:.0f} %, below {:.0f} % "
                                "diagnose)",
                                100 * mfu,
                                mfu < kLowMfu ? "low" : "below the aim",
                                100 * kAimedMfu,
                                100 * kLowMfu),
            .cause = largest_losses(mfu),
            .note = "",
            .remedies = {}};
  if (mfu < kAimedMfu) {
    auto best = fastest(neighbours(plan_), cost_, plan_.cluster().capacity());
    if (best && best->step_time < report_.step_time)
      remedies_.offer("the fastest layout nearby: " + summary(best->plan.layout()), *best);
  }
  file(mfu < kAimedMfu, std::move(f), fmt::format("MFU {:.1f} %", 100 * mfu));
}

std::string Checklist::largest_losses(double mfu) const {
  std::vector<Term> terms;
  for (int t = 0; t < kNumTerms; ++t) {
    const auto term = static_cast<Term>(t);
    if (term != Term::kCompute && share(report_[term]) > 0.01) terms.push_back(term);
  }
  std::stable_sort(
      terms.begin(), terms.end(), [&](Term a, Term b) { return report_[a] > report_[b]; });
  std::vector<std::string> words;
  for (const Term t : terms)
    words.push_back(fmt::format("{} {:.1f} %", key(t), 100 * share(report_[t])));
  const double compute = share(report_[Term::kCompute]);
  return fmt::format("{}compute is {:.1f} % of the step, and reaches {:.1f} % of the peak",
                     words.empty() ? "" : "lost to " + join(words) + "; ",
                     100 * compute,
                     compute > 0 ? 100 * mfu / compute : 0);
}

void Checklist::communication() {
  const double value = share(exposed_communication(report_));
  Finding f{.id = "communication",
            .value = value,
            .threshold = kMuchCommunication,
            .text = fmt::format("communication shows for {:.1f} % of the step (above {:.0f} %)",
                                100 * value,
                                100 * kMuchCommunication),
            .cause = "",
            .note = "",
            .remedies = {}};
  if (value > kMuchCommunication) {
    Term worst = Term::kExposedTp;
    for (const Term t : kExposedAxes) {
      if (report_[t] > report_[worst]) worst = t;
    }
    f.cause = fmt::format("most of it is {}: {}", key(worst), show(report_[worst]));
    if (l_.tp > 1) remedies_.try_degrees(fmt::format("tp={}", l_.tp / 2), l_.tp / 2, l_.pp);
    if (l_.tp > 1)
      remedies_.try_degrees(fmt::format("tp={},pp={}", l_.tp / 2, l_.pp * 2), l_.tp / 2, l_.pp * 2);
    remedies_.try_layout(fmt::format("micro_batch={}", l_.micro_batch * 2),
                         [](Layout& l) { l.micro_batch *= 2; });
    larger_batch();
    if (plan_.cluster().num_nodes() > 1) remedies_.try_network(2);
  }
  file(
      value > kMuchCommunication, std::move(f), fmt::format("communication {:.1f} %", 100 * value));
}

void Checklist::larger_batch() {
  remedies_.try_batch(fmt::format("a batch of {} sequences", 2 * plan_.workload().global_batch),
                      2 * plan_.workload().global_batch);
}

void Checklist::data_parallel() {
  if (l_.replicas() == 1) return;
  const double value = share(report_[Term::kExposedDp]);
  const bool found = value > kMuchDataParallel;
  Finding f{
      .id = "data_parallel",
      .value = value,
      .threshold = kMuchDataParallel,
      .text = fmt::format("gradient reduction shows for {:.1f} % of the step (above {:.0f} %)",
                          100 * value,
                          100 * kMuchDataParallel),
      .cause = fmt::format("{} of exposed_dp over {} ranks{}: longer than the backward that "
                           "could hide it",
                           show(report_[Term::kExposedDp]),
                           l_.replicas(),
                           plan_.cluster().num_nodes() > 1 ? ", between nodes" : ""),
      .note = l_.zero_stage == 3 ? "ZeRO-3 / FSDP moves 3 M per step against DDP's 2 M: 1.5 "
                                   "times as much, not 3 times"
                                 : "",
      .remedies = {}};
  if (found) {
    larger_batch();
    if (l_.zero_stage == 3)
      remedies_.try_layout("zero_stage=1", [](Layout& l) { l.zero_stage = 1; });
    remedies_.try_degrees(fmt::format("pp={}", l_.pp * 2), l_.tp, l_.pp * 2);
    if (plan_.cluster().num_nodes() > 1) remedies_.try_network(2);
  }
  file(found, std::move(f), fmt::format("data-parallel exchange {:.1f} %", 100 * value));
}

void Checklist::bubble() {
  if (l_.pp == 1) return;
  const double value = share(report_[Term::kBubble]);
  const std::optional<int>& cores = plan_.cluster().shared_cores;
  if (cores && plan_.world_size() > *cores) {
    out_.passed.push_back(
        fmt::format("bubble {:.1f} % (the ranks share {} cores: others compute meanwhile)",
                    100 * value,
                    *cores));
    return;
  }
  const int64_t m = plan_.num_micro_batches();
  const int64_t needed = micro_batches_for_small_bubble(l_.pp, l_.virtual_stages);
  Finding f{
      .id = "bubble",
      .value = value,
      .threshold = kMuchBubble,
      .text = fmt::format(
          "stages idle for {:.1f} % of the step (above {:.0f} %)", 100 * value, 100 * kMuchBubble),
      .cause = fmt::format(
          "{} micro-batches for {} stages; below 10 % takes {} of equal stages", m, l_.pp, needed),
      .note = fmt::format("(P-1)/(M+P-1) < 10 % is M > 9 (P-1) = {}; the usual 10 (P-1) is "
                          "10 % of the approximation (P-1)/M",
                          9 * (l_.pp - 1)),
      .remedies = {}};
  if (value > kMuchBubble) {
    if (l_.micro_batch > 1)
      remedies_.try_layout(fmt::format("micro_batch={}", l_.micro_batch / 2),
                           [](Layout& l) { l.micro_batch /= 2; });
    remedies_.try_interleaving();
    if (l_.pp > 2 || l_.tp < plan_.cluster().devices_per_node)
      remedies_.try_degrees(fmt::format("pp={}", l_.pp / 2), l_.tp, l_.pp / 2);
    // The bubble stays what it is while the rest of the step grows with the micro-batches.
    const double idle = report_[Term::kBubble].v;
    const double each = (report_.step_time.v - idle) / static_cast<double>(m);
    const auto estimate = static_cast<int64_t>(idle * (1 / kMuchBubble - 1) / each) + 1;
    if (const auto here = remedies_.try_micro_batches(std::max(m + 1, estimate), kMuchBubble))
      f.cause += fmt::format(", and {} as these stages are not equal", *here);
  }
  file(value > kMuchBubble, std::move(f), fmt::format("bubble {:.1f} %", 100 * value));
}

void Checklist::host() {
  const double value = share(report_[Term::kHost]);
  Finding f{.id = "host",
            .value = value,
            .threshold = kMuchHost,
            .text = fmt::format("the host shows for {:.1f} % of the step (above {:.0f} %): gaps "
                                "between kernels",
                                100 * value,
                                100 * kMuchHost),
            .cause =
                "issuing the operators of a layer takes longer than running them: launch "
                "overhead",
            .note = "",
            .remedies = {}};
  if (value > kMuchHost) {
    remedies_.try_layout(fmt::format("micro_batch={}", l_.micro_batch * 2),
                         [](Layout& l) { l.micro_batch *= 2; });
    if (l_.tp > 1) remedies_.try_degrees(fmt::format("tp={}", l_.tp / 2), l_.tp / 2, l_.pp);
    if (!plan_.cluster().is_local()) {
      remedies_.note("CUDA graphs, or compiled layers",
                     fmt::format("at most {} of host_s; data loading is not in it",
                                 show(report_[Term::kHost])));
    }
  }
  file(value > kMuchHost, std::move(f), fmt::format("host {:.1f} %", 100 * value));
}

}  // namespace meshwright
