// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/advice/decision_flow.h"
#include "sim/advice/flop_count.h"
#include "sim/advice/remedies.h"
#include "sim/core/text.h"

namespace meshwright {
namespace {

class Checklist {
 public:
  Checklist(const Plan& plan, const Simulation& simulation, const CostModel& cost)
      : plan_(plan),
        l_(plan.layout()),
        report_(simulation.report),
        cost_(cost),
        remedies_(plan, cost) {}

  Diagnosis run() {
    utilisation();
    communication();
    data_parallel();
    bubble();
    host();
    memory();
    recompute();
    attention();
    tensor_parallel_reach();
    kv_heads();
    alignment();
    return std::move(out_);
  }

 private:
  [[nodiscard]] double share(Seconds t) const { return t / report_.step_time; }

  /// Files the finding with the remedies gathered, or, below its threshold, as passed.
  void file(bool found, Finding f, const std::string& passed) {
    if (found) {
      f.remedies = remedies_.take();
      out_.findings.push_back(std::move(f));
    } else if (!passed.empty()) {
      out_.passed.push_back(passed);
    }
  }

  void utilisation() {
    const double mfu = utilization(plan_, cost_, report_.step_time, FlopDefinition::kModel).mfu;
    Finding f{
        .id = "mfu",
        .value = mfu,
        .threshold = kAimedMfu,
        .text = fmt::format("MFU {:.1f} %: {} (model FLOP; aim above {:.0f} %, below {:.0f} % "
                            "diagnose)",
                            100 * mfu,
                            mfu < kLowMfu ? "low" : "below the aim",
                            100 * kAimedMfu,
                            100 * kLowMfu),
        .cause = largest_losses(),
        .note = "",
        .remedies = {}};
    if (mfu < kAimedMfu) {
      auto best = fastest(neighbours(plan_), cost_, plan_.cluster().capacity());
      if (best && best->step_time < report_.step_time)
        remedies_.offer("the fastest layout nearby: " + summary(best->plan.layout()), *best);
    }
    file(mfu < kAimedMfu, std::move(f), fmt::format("MFU {:.1f} %", 100 * mfu));
  }

  /// Whatever is not compute, largest first.
  [[nodiscard]] std::string largest_losses(double mfu) const {
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

  void communication() {
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
      for (const Term t : kAxes) {
        if (report_[t] > report_[worst]) worst = t;
      }
      f.cause = fmt::format("most of it is {}: {}", key(worst), show(report_[worst]));
      if (l_.tp > 1) remedies_.try_degrees(fmt::format("tp={}", l_.tp / 2), l_.tp / 2, l_.pp);
      if (l_.tp > 1)
        remedies_.try_degrees(
            fmt::format("tp={},pp={}", l_.tp / 2, l_.pp * 2), l_.tp / 2, l_.pp * 2);
      remedies_.try_layout(fmt::format("micro_batch={}", l_.micro_batch * 2),
                           [](Layout& l) { l.micro_batch *= 2; });
      larger_batch();
      if (plan_.cluster().num_nodes() > 1) remedies_.try_network(2);
    }
    file(value > kMuchCommunication,
         std::move(f),
         fmt::format("communication {:.1f} %", 100 * value));
  }

  void larger_batch() {
    remedies_.try_batch(fmt::format("a batch of {} sequences", 2 * plan_.workload().global_batch),
                        2 * plan_.workload().global_batch);
  }

  void data_parallel() {
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

  void bubble() {
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
    Finding f{.id = "bubble",
              .value = value,
              .threshold = kMuchBubble,
              .text = fmt::format("stages idle for {:.1f} % of the step (above {:.0f} %)",
                                  100 * value,
                                  100 * kMuchBubble),
              .cause = fmt::format(
                  "{} micro-batches for {} stages; below 10 % takes {}", m, l_.pp, needed),
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
      if (needed > m) {
        const int64_t sequences = needed * l_.dp() * l_.micro_batch;
        remedies_.try_batch(
            fmt::format("{} micro-batches: a batch of {} sequences", needed, sequences), sequences);
      }
    }
    file(value > kMuchBubble, std::move(f), fmt::format("bubble {:.1f} %", 100 * value));
  }

  void host() {
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

  void memory() {
    const double value = report_.peak_memory / plan_.cluster().capacity();
    Finding f{
        .id = "memory",
        .value = value,
        .threshold = kFullMemory,
        .text = fmt::format("the fullest rank holds {} of {}: {:.1f} % (above {:.0f} %)",
                            show(report_.peak_memory),
                            show(plan_.cluster().capacity()),
                            100 * value,
                            100 * kFullMemory),
        .cause = fmt::format("weights, gradients and optimizer {}, activations {}",
                             show(report_[MemoryTerm::kWeights] + report_[MemoryTerm::kGradients] +
                                  report_[MemoryTerm::kOptimizer]),
                             show(report_[MemoryTerm::kActivations])),
        .note = "",
        .remedies = {}};
    if (value > kFullMemory) {
      if (l_.recompute == Recompute::kNone)
        remedies_.try_layout("recompute=full", [](Layout& l) { l.recompute = Recompute::kFull; });
      if (l_.micro_batch > 1)
        remedies_.try_layout(fmt::format("micro_batch={}", l_.micro_batch / 2),
                             [](Layout& l) { l.micro_batch /= 2; });
      if (l_.dp() * l_.cp > 1) {
        for (int stage = l_.zero_stage + 1; stage <= 3; ++stage) {
          remedies_.try_layout(fmt::format("zero_stage={}", stage), [stage](Layout& l) {
            l.dp_shard = l.dp();
            l.dp_replicate = 1;
            l.zero_stage = stage;
          });
        }
      }
      if (l_.offload.optimizer == MemoryTier::kDevice)
        remedies_.try_layout("offload_optimizer=host",
                             [](Layout& l) { l.offload.optimizer = MemoryTier::kHost; });
    }
    file(value > kFullMemory, std::move(f), fmt::format("memory {:.1f} %", 100 * value));
  }

  void recompute() {
    if (l_.recompute == Recompute::kNone) return;
    const double value = share(report_[Term::kRecompute]);
    Finding f{.id = "recompute",
              .value = value,
              .threshold = 0,
              .text = fmt::format("recompute takes {:.1f} % of the step", 100 * value),
              .cause = "forward is repeated so that its activations need not be kept",
              .note = "",
              .remedies = {}};
    remedies_.try_layout("recompute=none", [](Layout& l) {
      l.recompute = Recompute::kNone;
      l.recompute_layers = 0;
    });
    file(true, std::move(f), "");
  }

  void attention() {
    if (l_.flash_attention) return;
    Finding f{.id = "attention",
              .value = 1,
              .threshold = 0,
              .text = "attention is not fused: its scores are written to memory",
              .cause = fmt::format("scores of {} x {} tokens per head and sequence",
                                   plan_.workload().seq_len,
                                   plan_.workload().seq_len),
              .note =
                  "flash attention takes the memory of attention from O(n^2) to O(n), not the "
                  "other way round; do not checkpoint attention on top of it",
              .remedies = {}};
    remedies_.try_layout("flash_attention=on", [](Layout& l) {
      l.flash_attention = true;
      if (l.recompute == Recompute::kSelective) l.recompute = Recompute::kNone;
    });
    file(true, std::move(f), "");
  }

  void tensor_parallel_reach() {
    const int node = plan_.cluster().devices_per_node;
    const bool found = l_.tp > node;
    Finding f{
        .id = "tp_across_nodes",
        .value = static_cast<double>(l_.tp),
        .threshold = static_cast<double>(node),
        .text = fmt::format("tp {} reaches over nodes of {} devices", l_.tp, node),
        .cause = fmt::format("every layer's collectives go over {:.3g} GB/s links, not {:.3g}",
                             plan_.cluster().inter_node.bandwidth.v / 1e9,
                             plan_.cluster().intra_node.bandwidth.v / 1e9),
        .note = "",
        .remedies = {}};
    if (found) {
      remedies_.try_degrees(fmt::format("tp={}", node), node, l_.pp);
      const int more = l_.tp / node * l_.pp;
      remedies_.try_degrees(fmt::format("tp={},pp={}", node, more), node, more);
    }
    file(found, std::move(f), l_.tp > 1 ? "tp inside a node" : "");
  }

  void kv_heads() {
    const ModelSpec& m = plan_.model();
    if (m.mla || l_.tp == 1) return;
    const bool found = l_.tp > m.num_kv_heads;
    Finding f{.id = "kv_heads",
              .value = static_cast<double>(l_.tp),
              .threshold = static_cast<double>(m.num_kv_heads),
              .text = fmt::format("tp {} exceeds the {} KV heads: each is held by {} ranks",
                                  l_.tp,
                                  m.num_kv_heads,
                                  l_.tp / std::max<int64_t>(1, m.num_kv_heads)),
              .cause = "keys and values are replicated, so their memory stops shrinking",
              .note = "legal all the same: tp must divide the attention heads, not the KV heads",
              .remedies = {}};
    if (found) {
      const auto tp = static_cast<int>(m.num_kv_heads);
      remedies_.try_degrees(fmt::format("tp={}", tp), tp, l_.pp);
    }
    file(found, std::move(f), fmt::format("{} KV heads", m.num_kv_heads));
  }

  void alignment() {
    constexpr int64_t kAligned = 8;  // elements: 16 bytes of BF16, what tensor cores load
    const ModelSpec& m = plan_.model();
    const std::pair<std::string, int64_t> dims[] = {
        {"head_dim", m.head_dim}, {"d_model", m.d_model}, {"d_ff / tp", m.d_ff / l_.tp}};
    for (const auto& [name, dim] : dims) {
      if (dim % kAligned == 0 || (dim == 0 && m.moe)) continue;
      Finding f{.id = "alignment",
                .value = static_cast<double>(dim),
                .threshold = static_cast<double>(kAligned),
                .text = fmt::format("{} = {} is not a multiple of {}", name, dim, kAligned),
                .cause = "matmul and attention kernels fall back to slower ones",
                .note = "",
                .remedies = {}};
      remedies_.note(
          fmt::format("a model with {} = {}", name, (dim + kAligned - 1) / kAligned * kAligned),
          "not priced: the cost model rounds tiles but knows no slower kernel");
      file(true, std::move(f), "");
    }
  }

  static constexpr Term kAxes[] = {
      Term::kExposedTp, Term::kExposedCp, Term::kExposedEp, Term::kExposedPp, Term::kExposedDp};

  const Plan& plan_;
  const Layout& l_;
  const StepReport& report_;
  const CostModel& cost_;
  Remedies remedies_;
  Diagnosis out_;
};

}  // namespace

Seconds exposed_communication(const StepReport& r) {
  return r[Term::kExposedTp] + r[Term::kExposedCp] + r[Term::kExposedEp] + r[Term::kExposedPp] +
         r[Term::kExposedDp];
}

Diagnosis diagnose(const Plan& plan, const Simulation& simulation, const CostModel& cost) {
  return Checklist(plan, simulation, cost).run();
}

}  // namespace meshwright
