// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan_json.h"

namespace meshwright {

Json layout_to_json(const Plan& plan) {
  const Layout& l = plan.layout();
  return {{"dp_replicate", l.dp_replicate},
          {"dp_shard", l.dp_shard},
          {"tp", l.tp},
          {"sp", l.sp},
          {"cp", l.cp},
          {"cp_kind", kCpKindNames(l.cp_kind)},
          {"pp", l.pp},
          {"ep", l.ep},
          {"expert_tp", l.expert_tp},
          {"virtual_stages", l.virtual_stages},
          {"micro_batch", l.micro_batch},
          {"num_micro_batches", plan.num_micro_batches()},
          {"zero_stage", l.zero_stage},
          {"prefetch", l.prefetch},
          {"reshard", l.reshard},
          {"recompute", to_string(l.recompute)},
          {"recompute_layers", l.recompute_layers},
          {"flash_attention", l.flash_attention},
          {"schedule", to_string(l.schedule)},
          {"precision", to_string(l.precision)},
          {"gradients", kGradientFormatNames(l.gradients)},
          {"moments", kMomentFormatNames(l.moments)},
          {"offload_optimizer", kMemoryTierNames(l.offload.optimizer)},
          {"offload_parameters", kMemoryTierNames(l.offload.parameters)},
          {"offload_activations", kMemoryTierNames(l.offload.activations)},
          {"stages", l.stages}};
}

Result<Layout> layout_from_json(const Json& json,
                                const std::string& origin,
                                const std::string& pointer) {
  constexpr Range kDegree{1, 1e6};
  ObjectReader r(json, origin, pointer);
  Layout l;
  const auto degree = [&](const char* key) { return static_cast<int>(r.integer(key, kDegree)); };
  l.dp_replicate = degree("dp_replicate");
  l.dp_shard = degree("dp_shard");
  l.tp = degree("tp");
  l.sp = r.boolean_or("sp", false);
  l.cp = static_cast<int>(r.integer_or("cp", 1, kDegree));
  l.cp_kind = r.word("cp_kind", kCpKindNames, std::optional(CpKind::kRing));
  l.pp = degree("pp");
  l.ep = static_cast<int>(r.integer_or("ep", 1, kDegree));
  l.expert_tp = r.boolean_or("expert_tp", true);
  l.virtual_stages = static_cast<int>(r.integer_or("virtual_stages", 1, kDegree));
  l.micro_batch = r.integer("micro_batch", {1, 1e9});
  r.ignore("num_micro_batches");  // derived: global batch / (dp * micro_batch)
  l.zero_stage = static_cast<int>(r.integer("zero_stage", {0, 3}));
  l.prefetch = static_cast<int>(r.integer_or("prefetch", 1, {0, 64}));
  l.reshard = r.boolean_or("reshard", true);
  l.recompute = r.word("recompute", kRecomputeNames, std::optional(Recompute::kNone));
  l.recompute_layers = static_cast<int>(r.integer_or("recompute_layers", 0, {0, 1e6}));
  l.flash_attention = r.boolean_or("flash_attention", true);
  l.schedule = r.word("schedule", kScheduleNames, std::optional(ScheduleKind::k1f1b));
  l.precision = r.word("precision", kPrecisionNames);
  l.gradients = r.word("gradients", kGradientFormatNames, std::optional(GradientFormat::kFp32));
  l.moments = r.word("moments", kMomentFormatNames, std::optional(MomentFormat::kFp32));
  const auto tier = [&](const char* key) {
    return r.word(key, kMemoryTierNames, std::optional(MemoryTier::kDevice));
  };
  l.offload = {.optimizer = tier("offload_optimizer"),
               .parameters = tier("offload_parameters"),
               .activations = tier("offload_activations")};
  l.stages = r.integers_or_empty("stages", {0, 1e6});
  MW_RETURN_IF_ERROR(r.finish());
  return l;
}

}  // namespace meshwright
