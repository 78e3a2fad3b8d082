// SPDX-License-Identifier: Apache-2.0
#include "sim/mesh/layout.h"

#include <fmt/format.h>

#include <numeric>

namespace meshwright {

int64_t min_micro_batches(ScheduleKind kind, int num_ranks) {
  switch (kind) {
    case ScheduleKind::kGpipe:
    case ScheduleKind::k1f1b:
      return 1;
    case ScheduleKind::kInterleaved:
    case ScheduleKind::kZbH1:
      return num_ranks;
    case ScheduleKind::kZbH2:
    case ScheduleKind::kZbV:
      return 2 * int64_t{num_ranks} - 1;
    case ScheduleKind::kDualPipe:
      return 2 * int64_t{num_ranks};
  }
  return 1;
}

namespace {

/// "4x3+5" for 4, 4, 4, 5.
std::string run_lengths(const std::vector<int>& stages) {
  std::string text;
  for (size_t i = 0, end = 0; i < stages.size(); i = end) {
    while (end < stages.size() && stages[end] == stages[i]) ++end;
    if (!text.empty()) text += '+';
    text += end - i > 2 ? fmt::format("{}x{}", stages[i], end - i)
                        : fmt::format("{}",
                                      fmt::join(stages.begin() + static_cast<int>(i),
                                                stages.begin() + static_cast<int>(end),
                                                "+"));
  }
  return text;
}

}  // namespace

std::string summary(const Layout& l) {
  std::string text;
  if (l.dp_shard == 1 || l.dp_replicate == 1) {
    text += fmt::format("dp{}", l.dp());
  } else {
    text += fmt::format("dp{}x{}", l.dp_replicate, l.dp_shard);
  }
  text += fmt::format(" tp{}{} pp{}", l.tp, l.sp ? " sp" : "", l.pp);
  if (l.cp > 1) text += fmt::format(" cp{}{}", l.cp, l.cp_kind == CpKind::kUlysses ? "u" : "");
  if (l.ep > 1) text += fmt::format(" ep{}{}", l.ep, l.expert_tp || l.tp == 1 ? "" : " whole");
  text += fmt::format(" mb{}", l.micro_batch);
  if (l.zero_stage > 0) text += fmt::format(" zero{}", l.zero_stage);
  if (l.pp > 1) text += fmt::format(" {}", to_string(l.schedule));
  if (l.virtual_stages > 1) text += fmt::format(" v{}", l.virtual_stages);
  if (l.recompute == Recompute::kSelective) text += " recompute=selective";
  if (l.recompute == Recompute::kFull) text += " recompute";
  if (l.recompute_layers > 0) text += fmt::format("={}", l.recompute_layers);
  if (!l.flash_attention) text += " noflash";
  if (l.zero_stage == 3 && !l.reshard) text += " keep";
  if (l.zero_stage == 3 && l.prefetch != 1) text += fmt::format(" prefetch{}", l.prefetch);
  if (l.zero_stage == 3 && l.persistence_threshold > 0)
    text += fmt::format(" persist{}", l.persistence_threshold);
  if (l.reduce_bucket > 0) text += fmt::format(" bucket{}", l.reduce_bucket);
  if (l.precision == Precision::kFp8) text += " fp8";
  const auto offloads = [&](const char* what, MemoryTier tier) {
    if (tier != MemoryTier::kDevice) text += fmt::format(" {}>{}", what, kMemoryTierNames(tier));
  };
  offloads("optimizer", l.offload.optimizer);
  offloads("parameters", l.offload.parameters);
  offloads("activations", l.offload.activations);
  const int64_t layers = std::accumulate(l.stages.begin(), l.stages.end(), int64_t{0});
  if (l.pp > 1 && !l.stages.empty() && l.stages != balanced_stages(layers, l.num_parts())) {
    text += " stages " + run_lengths(l.stages);
  }
  return text;
}

std::vector<int> balanced_stages(int64_t num_layers, int num_parts) {
  std::vector<int> stages(static_cast<size_t>(num_parts), static_cast<int>(num_layers / num_parts));
  int64_t rest = num_layers % num_parts;
  for (int s = 1; s + 1 < num_parts && rest > 0; ++s, --rest) ++stages[static_cast<size_t>(s)];
  if (rest > 0) ++stages.front(), --rest;
  if (rest > 0) ++stages.back();
  return stages;
}

}  // namespace meshwright
