// SPDX-License-Identifier: Apache-2.0
#include "sim/step/replica_exchange.h"

#include "sim/step/block_communication.h"

namespace meshwright {
namespace {

/// Fully sharded steps were measured with BF16 reduce-scatters.
constexpr double kShardedGradientBytes = 2;

}  // namespace

ReplicaExchange::ReplicaExchange(const StepProblem& p, const Layout& l)
    : zero_stage_(l.zero_stage),
      gradient_bytes_(l.zero_stage >= 3 ? kShardedGradientBytes : p.framework.gradient_bytes),
      alpha_s_(p.framework.collective_alpha_s),
      exposed_(l.zero_stage >= 3 ? 0 : p.framework.dp_exposed),
      interference_(l.zero_stage >= 3 ? p.framework.fsdp_interference : 0),
      hop_exposed_(p.framework.pp_exposed) {
  const FrameworkProfile& f = p.framework;
  const double nic = l.zero_stage >= 3   ? f.zero3_nic_efficiency
                     : l.zero_stage >= 1 ? f.zero_nic_efficiency
                                         : f.nic_efficiency;
  const auto ring = [&](double ranks, double stride) {
    return Ring{ranks, ring_bandwidth(p, ranks, stride, nic)};
  };
  dense_ = ring(l.replicas(), l.tp);
  experts_ = ring(l.expert_replicas(), l.ep * l.expert_tp_degree());
  const double stride = static_cast<double>(l.tp) * l.replicas();
  const bool inside = stride * 2 <= p.device.nvlink_domain;
  hop_bandwidth_ = inside ? p.device.nvlink_bandwidth * p.device.nvlink_efficiency
                          : p.links.nic_bandwidth * f.nic_efficiency;
}

Seconds ReplicaExchange::reduce(double parameters, bool experts) const {
  const double volumes = zero_stage_ == 0 ? 2 : 1;
  const double alpha = zero_stage_ >= 3 ? alpha_s_ : 0;
  return Seconds{volumes * (experts ? experts_ : dense_).one_way(gradient_bytes_ * parameters) +
                 alpha};
}

Seconds ReplicaExchange::gather(double parameters, bool experts) const {
  const double bytes = zero_stage_ >= 3 ? 2 : gradient_bytes_;
  const double alpha = zero_stage_ >= 3 ? alpha_s_ : 0;
  return Seconds{(experts ? experts_ : dense_).one_way(bytes * parameters) + alpha};
}

Seconds ReplicaExchange::transfer(Bytes activation) const {
  return Seconds{hop_exposed_ * (activation.v / hop_bandwidth_ + alpha_s_)};
}

}  // namespace meshwright
