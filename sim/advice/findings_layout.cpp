// SPDX-License-Identifier: Apache-2.0
// What the layout holds, and how it is cut: memory, recompute, attention, heads, alignment.
#include <fmt/format.h>

#include <algorithm>

#include "sim/advice/checklist.h"
#include "sim/core/text.h"

namespace meshwright {

void Checklist::memory() {
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

void Checklist::recompute() {
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

void Checklist::attention() {
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

void Checklist::tensor_parallel_reach() {
  const int node = plan_.cluster().devices_per_node;
  const bool found = l_.tp > node;
  Finding f{.id = "tp_across_nodes",
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

void Checklist::sequence_parallel() {
  if (l_.tp == 1) return;
  Finding f{.id = "sequence_parallel",
            .value = static_cast<double>(l_.tp),
            .threshold = 1,
            .text = fmt::format("sequence parallelism is off with tp {}", l_.tp),
            .cause = fmt::format("norms, dropout and residuals are held and computed {} times over",
                                 l_.tp),
            .note =
                "it adds no traffic, and each replicated tensor of a layer (b s d x 2 B) shrinks "
                "to 1/tp of it on every device",
            .remedies = {}};
  if (!l_.sp) remedies_.try_layout("sp=on", [](Layout& l) { l.sp = true; });
  file(!l_.sp, std::move(f), "sp on");
}

void Checklist::kv_heads() {
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

void Checklist::alignment() {
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

}  // namespace meshwright
