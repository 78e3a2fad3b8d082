// SPDX-License-Identifier: Apache-2.0
#include "sim/step/block_communication.h"

#include <algorithm>
#include <cmath>

namespace meshwright {
namespace {

/// What shows of `comm` seconds of collectives beside one forward's matmuls.
double exposed_tp(const StepProblem& problem,
                  const ShardLayout& shard,
                  const BlockWork& work,
                  double comm) {
  constexpr double kPieces = 4;
  const auto behind_matmuls = [&](double pieces) {
    return comm / pieces + std::max(0.0, comm * (1 - 1 / pieces) - work.matmul_forward_s);
  };
  switch (shard.tp_overlap) {
    case TpOverlap::kFramework:
      return comm * (problem.work.async_tp ? problem.framework.tp_async_exposed
                                           : problem.framework.tp_exposed);
    case TpOverlap::kNone:
      return comm;
    case TpOverlap::kRing:
      return behind_matmuls(shard.tp);
    case TpOverlap::kPipe:
      return behind_matmuls(kPieces);
  }
  return comm;
}

}  // namespace

double ring_bandwidth(const StepProblem& problem,
                      double size,
                      double stride,
                      double nic_efficiency,
                      NetworkTier tier) {
  const DeviceFacts& d = problem.device;
  const double nvlink = d.nvlink_bandwidth * d.nvlink_efficiency;
  if (tier == NetworkTier::kNic) return problem.links.nic_bandwidth * nic_efficiency;
  if (tier == NetworkTier::kNvlink || size * stride <= d.nvlink_domain) return nvlink;
  const double members =
      std::clamp(d.nvlink_domain / std::max(1.0, stride), 1.0, std::max(1.0, size));
  const double nic = problem.links.nic_bandwidth * nic_efficiency * std::floor(members);
  return members > 1 ? std::min(nvlink, nic) : nic;
}

BlockCommunication block_communication(const StepProblem& problem,
                                       const ShardLayout& shard,
                                       const BlockShape& block,
                                       const BlockWork& work) {
  BlockCommunication c;
  const FrameworkProfile& f = problem.framework;
  const double again = work.forward_repeats;
  const double h = problem.model.hidden;
  if (shard.tp > 1) {
    const double bw = ring_bandwidth(problem, shard.tp, 1, f.nic_efficiency, shard.tp_tier);
    const double one =
        2 * (shard.tp - 1) / shard.tp * 2 * work.tokens * h / bw + 2 * f.collective_alpha_s;
    c.tp_forward_s = exposed_tp(problem, shard, work, work.tp_collectives * one);
    const double backward = problem.work.sequence_parallel && shard.regathers ? 1.25 : 1.0;
    c.tp_s = c.tp_forward_s * (1 + again + backward);
  }
  if (shard.cp > 1 && block.attention.num_heads > 0) {
    const double bw = ring_bandwidth(problem, shard.cp, shard.tp, f.nic_efficiency);
    const AttentionShape& a = block.attention;
    const double kv = std::max(1.0, a.num_kv_heads / shard.tp) * (a.head_dim + a.v_head_dim);
    const double forward = (shard.cp - 1) * 2 * work.tokens * kv / bw;
    c.cp_s = f.cp_exposed * forward * (3 + again);
  }
  if (shard.ep > 1 && block.ffn.num_experts > 0) {
    const double width = block.ffn.latent > 0 ? block.ffn.latent : h;
    const double bytes = 2 * work.tokens / shard.tp * shard.expert_tp * block.ffn.top_k * width;
    const double domain = std::min(problem.device.nvlink_domain, shard.ep);
    const double nv = problem.device.nvlink_bandwidth * problem.device.nvlink_efficiency;
    double one = f.ep_exposed * bytes * (domain - 1) / shard.ep / nv;
    if (shard.ep > domain) {
      // A token goes to a node once, however many of its experts are there.
      const double nodes = shard.ep / domain;
      const double copies = (nodes - 1) * (1 - std::pow(1 - 1 / nodes, block.ffn.top_k));
      const double nic = problem.links.nic_bandwidth * f.nic_efficiency;
      one = std::max(one, f.ep_nic_exposed * bytes / block.ffn.top_k * copies / nic);
    }
    c.ep_s = 2 * (one + f.collective_alpha_s) * (2 + again);
  }
  return c;
}

}  // namespace meshwright
