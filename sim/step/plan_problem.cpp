// SPDX-License-Identifier: Apache-2.0
#include "sim/step/plan_problem.h"

#include <string>

#include "sim/step/step_constants.h"

namespace meshwright {
namespace {

RecomputeKind recompute_kind(Recompute r) {
  switch (r) {
    case Recompute::kNone:
      return RecomputeKind::kNone;
    case Recompute::kSelective:
      return RecomputeKind::kCore;
    case Recompute::kFull:
      return RecomputeKind::kFull;
  }
  return RecomputeKind::kNone;
}

std::string measured_framework(const std::string& device_class) {
  const bool old = device_class == "v100" || device_class == "a100";
  return old ? "megatron_classic" : "megatron_core";
}

}  // namespace

std::optional<StepStack> step_stack(const ClusterSpec& cluster) {
  if (cluster.is_local()) return std::nullopt;
  Result<PublishedDevice> published = published_device(cluster.device.name);
  if (!published) published = published_device(cluster.device.name + "-80g");  // "h100"
  const Result<StepConstants> constants = StepConstants::builtin();
  if (!published || !constants) return std::nullopt;
  StepStack stack{.device = published->facts};
  DeviceFacts& d = stack.device;
  d.peak_bf16 = cluster.device.peak_bf16.v;
  d.peak_fp32 = cluster.device.peak_fp32.v;
  d.memory_bandwidth = cluster.device.memory_bandwidth.v;
  d.memory_bytes = cluster.device.memory.v;
  d.num_sms = cluster.device.num_sms;
  d.nvlink_bandwidth = cluster.intra_node.bandwidth.v;
  stack.links = {.devices_per_node = static_cast<double>(cluster.devices_per_node),
                 .nic_bandwidth = cluster.inter_node.bandwidth.v};
  constants->apply(
      measured_framework(published->device_class), published->device_class, d, stack.framework);
  return stack;
}

StepProblem step_problem(const StepStack& stack, const Plan& plan) {
  const Layout& l = plan.layout();
  return {
      .model = model_shape(plan.model()),
      .device = stack.device,
      .links = stack.links,
      .framework = stack.framework,
      .work = {
          .seq = static_cast<double>(plan.workload().seq_len),
          .global_batch = static_cast<double>(plan.workload().global_batch),
          .precision = l.precision == Precision::kFp8 ? GemmPrecision::kFp8 : GemmPrecision::kBf16,
          .attention = l.flash_attention ? AttentionKernel::kFlash : AttentionKernel::kUnfused,
          .recompute = recompute_kind(l.recompute),
          .sequence_parallel = l.sp,
          .offload = l.offload.optimizer != MemoryTier::kDevice}};
}

ShardLayout shard_layout(const Layout& l) {
  return {.tp = static_cast<double>(l.tp),
          .cp = static_cast<double>(l.cp),
          .ep = static_cast<double>(l.ep),
          .micro_batch = static_cast<double>(l.micro_batch),
          .zero = l.zero_stage,
          .dp = static_cast<double>(l.dp())};
}

}  // namespace meshwright
