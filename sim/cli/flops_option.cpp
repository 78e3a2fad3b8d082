// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/flops_option.h"

#include "sim/core/text.h"

namespace meshwright::cli {

void add_flops_option(CLI::App& verb, std::string& word) {
  verb.add_option("--flops",
                  word,
                  "FLOP that utilisation counts: model (MFU: full attention matrix, no recompute), "
                  "causal (MFU: half of the scores), hardware (HFU: what recompute repeats too)")
      ->capture_default_str();
}

Result<FlopDefinition> parse_flops(const std::string& word) {
  if (const auto definition = flop_definition_named(word)) return *definition;
  return Error{.where = "--flops",
               .field = "flops",
               .value = word,
               .rule = "must be one of " + join(flop_definition_names())};
}

std::string utilization_name(FlopDefinition definition) {
  switch (definition) {
    case FlopDefinition::kModel:
      return "MFU";
    case FlopDefinition::kHardware:
      return "HFU";
    case FlopDefinition::kCausal:
      return "MFU(causal)";
  }
  return "";
}

double utilization_value(const Utilization& u, FlopDefinition definition) {
  return definition == FlopDefinition::kHardware ? u.hfu : u.mfu;
}

std::string utilization_legend(FlopDefinition definition) {
  switch (definition) {
    case FlopDefinition::kModel:
      return "MFU counts model FLOP: the full attention matrix, no recompute (--flops)";
    case FlopDefinition::kHardware:
      return "HFU counts hardware FLOP: the full attention matrix, and what recompute repeats "
             "(--flops)";
    case FlopDefinition::kCausal:
      return "MFU(causal) counts half of the attention scores, no recompute (--flops)";
  }
  return "";
}

void add_utilization(Json& document,
                     const Plan& plan,
                     const CostModel& cost,
                     Seconds step_time,
                     FlopDefinition definition) {
  const Utilization u = utilization(plan, cost, step_time, definition);
  const FlopCount flop = step_flop(plan);
  document["mfu"] = u.mfu;
  document["mfu_flop_definition"] = to_string(u.mfu_definition);
  document["hfu"] = u.hfu;
  document["flop_per_step"] = {
      {"model", flop.model.v}, {"hardware", flop.hardware.v}, {"causal", flop.causal.v}};
}

}  // namespace meshwright::cli
