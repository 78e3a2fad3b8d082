// SPDX-License-Identifier: Apache-2.0
#include "sim/step/plan_problem.h"

#include <algorithm>
#include <string>
#include <vector>

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

StepSchedule step_schedule(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kZbH1:
      return StepSchedule::kZeroBubble1;
    case ScheduleKind::kZbH2:
      return StepSchedule::kZeroBubble2;
    case ScheduleKind::kZbV:
    case ScheduleKind::kDualPipe:
      return StepSchedule::kZeroBubbleV;
    default:
      return StepSchedule::kOneFOneB;
  }
}

/// Attention's share of the pairs of whole sequences.
double packed_share(const Workload& w) {
  return w.attention_span() / static_cast<double>(w.seq_len);
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
          .lora = plan.workload().lora.has_value(),
          .offload = l.offload.optimizer != MemoryTier::kDevice,
          .packed = packed_share(plan.workload())}};
}

StepLayout step_layout(const Plan& plan) {
  const Layout& l = plan.layout();
  StepLayout s{.shard = shard_layout(l),
               .pp = static_cast<double>(l.pp),
               .vpp = static_cast<double>(l.virtual_stages),
               .dp = static_cast<double>(l.dp()),
               .zero = l.zero_stage,
               .schedule = step_schedule(l.schedule),
               .micro_batches = static_cast<double>(plan.num_micro_batches())};
  std::vector<int> of_rank(static_cast<size_t>(l.pp));
  for (size_t part = 0; part < l.stages.size(); ++part)
    of_rank[part % static_cast<size_t>(l.pp)] += l.stages[part];
  s.layers_first = of_rank.front();
  s.layers_last = of_rank.back();
  s.layers_max = *std::max_element(of_rank.begin(), of_rank.end());
  return s;
}

ShardLayout shard_layout(const Layout& l) {
  return {.tp = static_cast<double>(l.tp),
          .cp = static_cast<double>(l.cp),
          .ep = static_cast<double>(l.ep),
          .expert_tp = static_cast<double>(l.expert_tp_degree()),
          .micro_batch = static_cast<double>(l.micro_batch),
          .zero = l.zero_stage,
          .dp = static_cast<double>(l.dp())};
}

}  // namespace meshwright
