// SPDX-License-Identifier: Apache-2.0
#include "sim/step/step_time.h"

#include <algorithm>
#include <cmath>

#include "sim/step/block_communication.h"

namespace meshwright {
namespace {

constexpr double kAdamBytes = 34;  // per parameter: read g, p, m, v, master; write the last four

/// Rings of gradients (and of gathered weights) of one step.
double replica_exchange(const StepProblem& p, const StepLayout& l, double dense, double experts) {
  const double bytes = 2 * p.framework.gradient_bytes;
  const double nic = l.zero >= 1 ? p.framework.zero_nic_efficiency : p.framework.nic_efficiency;
  double t = 0;
  const double group = l.dp * l.shard.cp;
  if (group > 1) {
    const double bw = ring_bandwidth(p, group, l.shard.tp, nic, l.dp_tier);
    t += (group - 1) / group * bytes * dense / bw;
  }
  const double expert_group = group * l.shard.tp / (l.shard.ep * l.shard.expert_tp);
  if (experts > 0 && expert_group > 1) {
    const double bw = ring_bandwidth(p, expert_group, l.shard.ep, nic);
    t += (expert_group - 1) / expert_group * bytes * experts / bw;
  }
  return t;
}

/// Seconds per micro-batch by which moving a layer's offloaded states takes longer than computing
/// it: weights come for forward and for backward, saved tensors leave and return.
double offload_time(const StepProblem& p, const ShardCost& c, const StepLayout& l) {
  if (!l.offload.weights && !l.offload.activations) return 0;
  const BlockCost& b = c.block;
  const double bytes = (l.offload.weights ? 2 * (b.dense_params + b.expert_params) : 0) +
                       (l.offload.activations ? c.saved_bytes : 0);
  const double t = bytes / p.links.host_bandwidth;
  return std::max(0.0, t - b.forward_s) + std::max(0.0, t - b.backward_s - b.recompute_s);
}

/// Seconds of gathers and reduce-scatter of one fully sharded layer of `params` parameters.
double gather_time(const StepProblem& p, const StepLayout& l, double params) {
  const double group = l.dp * l.shard.cp;
  if (group <= 1) return 0;
  const double bw = ring_bandwidth(p, group, l.shard.tp, p.framework.zero3_nic_efficiency);
  const double volumes = l.zero == 2 ? 2 : 3;
  return volumes * (2 * params * (group - 1) / group / bw + p.framework.collective_alpha_s);
}

}  // namespace

void split_layers(double layers, StepLayout& l) {
  const auto divides = [&](double n) { return std::fmod(n, l.pp) == 0; };
  const double whole = std::ceil(layers / l.pp);
  l.layers_max = l.layers_first = l.layers_last = whole;
  if (divides(layers)) return;
  if (divides(layers + 2)) {
    l.layers_first = l.layers_last = whole - 1;
  } else {
    l.layers_last = whole - 1;
  }
}

StepTerms evaluate_step(const StepProblem& p, const ShardCost& c, const StepLayout& l) {
  const FrameworkProfile& f = p.framework;
  const BlockCost& b = c.block;
  const double m = l.micro_batches;
  const double head = c.head_s + c.mtp_s;
  StepTerms t;

  // Stages.
  const double stream = f.memory_fraction * p.device.memory_bandwidth;
  const double accumulate =
      m > 1 && !p.work.lora ? f.accumulate_bytes * (b.dense_params + b.expert_params) / stream : 0;
  double layer = b.total_s() + accumulate;
  const double moved = offload_time(p, c, l);
  layer += moved;
  double shown_gather = 0;
  if (l.zero == 3 || (l.zero == 2 && f.zero3_nic_efficiency != f.nic_efficiency)) {
    const double gather = gather_time(p, l, b.dense_params + b.expert_params);
    shown_gather = std::max(layer, gather) + f.fsdp_interference * std::min(layer, gather) - layer;
    layer += shown_gather;
  }
  const double first = l.layers_first * layer + c.embed_s + (l.pp == 1 ? head : 0);
  const double last = l.layers_last * layer + (l.pp == 1 ? c.embed_s : 0) + head;
  const double middle = l.layers_max * layer;
  const double sum = c.layers * layer + c.embed_s + head;
  const bool by_hand = l.balanced && std::fmod(c.layers, l.pp) != 0;
  const double fullest = l.pp == 1 ? sum
                         : by_hand ? std::max(sum / l.pp, (c.layers / l.pp) * layer)
                                   : std::max({first, last, middle});
  const bool ends = l.pp == 1 || (!by_hand && last >= fullest);
  const double layers = l.pp == 1          ? c.layers
                        : ends             ? l.layers_last
                        : fullest == first ? l.layers_first
                                           : l.layers_max;
  t.compute_s =
      m * (layers * (b.forward_s + b.backward_s + accumulate) + (fullest - layers * layer));
  t.recompute_s = m * layers * b.recompute_s;
  t.exposed_tp_s = m * layers * b.tp_s;
  t.exposed_cp_s = m * layers * b.cp_s;
  t.exposed_ep_s = m * layers * b.ep_s;
  t.exposed_dp_s = m * layers * shown_gather;
  t.host_s = m * layers * b.host_s + m * f.host_micro_batch_s + f.host_step_s;

  // Pipeline.
  double bubble = (sum - fullest) / l.vpp;
  if (l.schedule == StepSchedule::kZeroBubble1) bubble *= f.bubble_zb1;
  if (l.schedule == StepSchedule::kZeroBubble2 || l.schedule == StepSchedule::kZeroBubbleV) {
    bubble = (sum - fullest) * f.bubble_zb2;
  }
  if (l.schedule == StepSchedule::kOneFOneB && l.vpp > 1 && std::fmod(m, l.pp) != 0) {
    // Parts pass pp micro-batches at a time; those that are missing stay idle slots.
    bubble += (l.vpp - 1) * (l.pp - std::fmod(m, l.pp)) * fullest / l.vpp;
  }
  t.bubble_s = bubble;
  if (l.pp > 1) {
    const double stride = l.shard.tp * l.shard.cp * l.dp;
    const bool inside = l.pp_tier == NetworkTier::kNvlink || (l.pp_tier == NetworkTier::kByPlace &&
                                                              stride * 2 <= p.device.nvlink_domain);
    const double hop = c.hop_bytes * (l.scatters_hops ? 1 : l.shard.tp) /
                           (inside ? p.device.nvlink_bandwidth * p.device.nvlink_efficiency
                                   : p.links.nic_bandwidth * f.nic_efficiency) +
                       f.collective_alpha_s;
    const double hops = l.vpp > 1 ? 2.4 * l.vpp * (l.pp - 1) : 2 * (l.pp - 1) * (m / l.pp + 0.68);
    t.exposed_pp_s = f.pp_exposed * hops * hop;
  }

  // Replicas and optimizer.
  const double head_params = c.head_params + c.final_norm_params;
  const double tied = p.model.tied_embeddings ? c.head_params : 0;
  const double ends_params = l.pp == 1          ? c.embed_params + head_params - tied
                             : ends             ? head_params
                             : fullest == first ? c.embed_params
                                                : 0;
  const double dense = p.work.lora ? 0.0 : layers * b.dense_params + ends_params;
  const double experts = p.work.lora ? 0.0 : layers * b.expert_params;
  const double group = l.dp * l.shard.cp;
  if (l.zero < 3) {
    const double total = replica_exchange(p, l, dense, experts);
    const double hiding =
        f.dp_hidden_share * layers * (b.forward_s + b.backward_s) / (l.pp > 1 ? l.vpp : 1);
    switch (l.dp_overlap) {
      case DpOverlap::kFramework:
        t.exposed_dp_s += f.dp_exposed * total + std::max(0.0, (1 - f.dp_exposed) * total - hiding);
        break;
      case DpOverlap::kNone:
        t.exposed_dp_s += total;
        break;
      case DpOverlap::kBackward:
        t.exposed_dp_s += std::max(0.0, total - layers * b.backward_s / (l.pp > 1 ? l.vpp : 1));
        break;
    }
  }
  const double expert_group = std::max(1.0, group * l.shard.tp / (l.shard.ep * l.shard.expert_tp));
  const double owned = l.zero >= 1 ? dense / group + experts / expert_group : dense + experts;
  t.optimizer_s = kAdamBytes * owned / stream;
  if (p.work.offload || l.offload.optimizer)
    t.optimizer_s += kAdamBytes * owned / p.links.host_bandwidth;

  const double nodes =
      std::max(1.0, l.shard.tp * l.shard.cp * l.dp * l.pp / p.links.devices_per_node);
  t.other_s = m * layers * moved;
  t.other_s += f.straggle_per_doubling * std::log2(nodes) * t.total_s();
  return t;
}

}  // namespace meshwright
