// SPDX-License-Identifier: Apache-2.0
// What states are kept where, and in which format.
#include "sim/plan/rules.h"

namespace meshwright {

namespace {

void check_zero(Rules& r) {
  const Layout& l = r.layout;
  if (l.zero_stage < 0 || l.zero_stage > 3)
    r.broken("zero_stage", l.zero_stage, "must be from 0 to 3", "use zero_stage=0 to zero_stage=3");
  if (l.zero_stage == 0 && l.dp_shard > 1)
    r.broken("dp_shard",
             l.dp_shard,
             "must be 1 with zero_stage=0, which shards nothing",
             fmt::format("use dp_replicate={} and dp_shard=1, or zero_stage=1", l.dp()));
  if (l.zero_stage > 0 && l.shards() == 1)
    r.broken("zero_stage", l.zero_stage, "needs dp_shard > 1 to shard over", "use zero_stage=0");
  if (l.zero_stage >= 2 && splits_backward(l.schedule))
    r.broken("zero_stage",
             l.zero_stage,
             fmt::format("schedule {} puts weight gradients off, and ZeRO-{} would keep them whole "
                         "until then",
                         to_string(l.schedule),
                         l.zero_stage),
             "use zero_stage=1, or schedule=1f1b");
  if (l.prefetch < 0 || l.prefetch > 64)
    r.broken("prefetch", l.prefetch, "must be from 0 to 64 blocks", "use prefetch=1");
  if (l.persistence_threshold < 0)
    r.broken("persistence_threshold",
             l.persistence_threshold,
             "must be a number of elements, or 0 (all tensors are sharded)",
             "use persistence_threshold=0");
  if (l.reduce_bucket < 0)
    r.broken("reduce_bucket",
             l.reduce_bucket,
             "must be a number of elements, or 0 (each block's gradients leave by themselves)",
             "use reduce_bucket=0");
}

void check_recompute(Rules& r) {
  const Layout& l = r.layout;
  if (l.recompute == Recompute::kSelective && l.flash_attention)
    r.broken("recompute",
             to_string(l.recompute),
             "selective repeats the attention scores, which flash attention never keeps",
             "use recompute=none, or flash_attention=off");
  if (l.recompute_layers < 0 || l.recompute_layers > r.problem.model.num_layers)
    r.broken("recompute_layers",
             l.recompute_layers,
             fmt::format("must be from 0 (all) to the {} layers", r.problem.model.num_layers),
             "use recompute_layers=0");
  if (l.recompute_layers > 0 && l.recompute == Recompute::kNone)
    r.broken("recompute_layers",
             l.recompute_layers,
             "has nothing to repeat with recompute=none",
             "use recompute=full, or recompute_layers=0");
}

void check_offload(Rules& r) {
  const Layout& l = r.layout;
  if (!l.offload.any()) return;
  const auto tier = [&](const char* field, MemoryTier t) {
    if (t == MemoryTier::kDevice) return;
    const DeviceSpec& d = r.problem.cluster.device;
    const bool host = t == MemoryTier::kHost;
    if (r.problem.cluster.is_local()) {
      r.broken(field, kMemoryTierNames(t), "CPU ranks have one memory", "use device");
    } else if ((host ? d.host_bandwidth : d.nvme_bandwidth).v <= 0) {
      r.broken(field,
               kMemoryTierNames(t),
               fmt::format("the cluster's document gives {} no bandwidth", kMemoryTierNames(t)),
               host ? "give host_GBps and host_memory_GiB" : "give nvme_GBps");
    }
  };
  tier("offload_optimizer", l.offload.optimizer);
  tier("offload_parameters", l.offload.parameters);
  tier("offload_activations", l.offload.activations);
  if (l.offload.parameters != MemoryTier::kDevice && l.zero_stage != 3)
    r.broken("offload_parameters",
             kMemoryTierNames(l.offload.parameters),
             "fetches the parameters layer by layer, as ZeRO-3 does",
             "use zero_stage=3, or offload_parameters=device");
}

}  // namespace

void check_states(Rules& r) {
  check_zero(r);
  check_recompute(r);
  check_offload(r);
}

void check_engine(Rules& r) {
  const Layout& l = r.layout;
  const bool cpu = r.problem.cluster.is_local();
  if (cpu && l.precision != Precision::kFp32)
    r.broken("precision",
             to_string(l.precision),
             "CPU ranks compute in FP32 (a BF16 matmul is hundreds of times slower there)",
             "use --precision fp32");
  if (l.precision == Precision::kFp8 && !cpu && r.problem.cluster.device.peak_fp8.v <= 0)
    r.broken("precision",
             to_string(l.precision),
             fmt::format("the matmul units of {} have no FP8", r.problem.cluster.device.name),
             "use --precision bf16");
}

}  // namespace meshwright
