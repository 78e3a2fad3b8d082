// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/rule_checks.h"

#include <fmt/format.h>

#include "sim/advice/variants.h"
#include "sim/core/text.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {
namespace {

/// Above this many parameters the rule book takes pipelines for granted.
constexpr double kPipelineParameters = 100e9;

RuleCheck micro_batch_rule(const RankedPlan& plan) {
  const Layout& l = plan.plan.layout();
  const auto m = plan.plan.num_micro_batches();
  const int64_t needed = micro_batches_for_small_bubble(l.pp, l.virtual_stages);
  const std::optional<int>& cores = plan.plan.cluster().shared_cores;
  const bool shared = cores && plan.plan.world_size() > *cores;
  return {.rule = "enough micro-batches for a bubble below 10 %",
          .holds = shared || m >= needed || plan.simulation.bubble_fraction < 0.1,
          .figures =
              fmt::format("{} micro-batches, {} stages: needs {}; the {} schedule idles {:.1f} %",
                          m,
                          l.pp,
                          needed,
                          to_string(l.schedule),
                          100 * plan.simulation.bubble_fraction) +
              (shared ? fmt::format(" (the ranks share {} cores: others compute meanwhile)", *cores)
                      : ""),
          .note = fmt::format("exact: M > 9 (P-1); the rule of thumb 10 (P-1) = {} is 10 % of the "
                              "approximation (P-1)/M",
                              10 * (l.pp - 1))};
}

RuleCheck sequence_parallel_rule(const RankedPlan& plan, const CostModel& cost) {
  const Layout& l = plan.plan.layout();
  RuleCheck check{.rule = "sequence parallelism is on with tensor parallelism",
                  .holds = l.sp,
                  .figures = l.sp ? "on" : "off",
                  .note =
                      "it adds no traffic, and each replicated tensor of a layer (b s d x 2 B) "
                      "shrinks to 1/tp of it on every device; no 59 GB per device"};
  if (l.sp) return check;
  Layout with = l;
  with.sp = true;
  if (const auto other = in_layout(plan.plan, with)) {
    const Variant v = simulated(*other, cost);
    check.figures = fmt::format("off: {} and {}; on: {} and {}",
                                show(plan.simulation.report.step_time),
                                show(plan.simulation.report.peak_memory),
                                show(v.step_time),
                                show(v.peak));
  }
  return check;
}

RuleCheck pipeline_rule(const RankedPlan& plan, const DecisionFlow& flow) {
  const auto parameters = static_cast<double>(parameter_count(plan.plan.model()));
  const bool needed = flow.strategy == Strategy::kPipeline || parameters > kPipelineParameters;
  RuleCheck check{.rule = "pipelines only beyond 100 B parameters, or where tp and ZeRO do not fit",
                  .holds = plan.plan.layout().pp == 1 || needed,
                  .figures = fmt::format("pp {}, {:.4g} B parameters; {} fits",
                                         plan.plan.layout().pp,
                                         parameters / 1e9,
                                         to_string(flow.strategy)),
                  .note = ""};
  if (!check.holds && flow.best) {
    check.figures += fmt::format(": {} takes {} against {}",
                                 summary(flow.best->plan.layout()),
                                 show(flow.best->simulation.report.step_time),
                                 show(plan.simulation.report.step_time));
    if (plan.simulation.report.step_time < flow.best->simulation.report.step_time)
      check.figures += ", so the rule would cost time here";
  }
  return check;
}

}  // namespace

int64_t micro_batches_for_small_bubble(int pp, int virtual_stages) {
  return pp == 1 ? 1 : (9 * (int64_t{pp} - 1)) / virtual_stages + 1;
}

std::vector<RuleCheck> check_rules(const RankedPlan& plan,
                                   const CostModel& cost,
                                   const DecisionFlow& flow) {
  const Layout& l = plan.plan.layout();
  const ModelSpec& m = plan.plan.model();
  const int node = plan.plan.cluster().devices_per_node;
  std::vector<RuleCheck> checks;
  if (l.tp > 1) {
    checks.push_back({.rule = "tensor parallelism stays inside a node",
                      .holds = l.tp <= node,
                      .figures = fmt::format("tp {}, {} devices per node", l.tp, node),
                      .note = ""});
    checks.push_back(sequence_parallel_rule(plan, cost));
    if (!m.mla) {
      checks.push_back(
          {.rule = "tp does not exceed the KV heads",
           .holds = l.tp <= m.num_kv_heads,
           .figures = fmt::format("tp {}, {} KV heads", l.tp, m.num_kv_heads),
           .note = "beyond them it is legal (it must divide the attention heads), but KV heads are "
                   "replicated and their memory stops shrinking"});
    }
  }
  if (l.pp > 1) checks.push_back(micro_batch_rule(plan));
  checks.push_back(pipeline_rule(plan, flow));
  return checks;
}

}  // namespace meshwright
