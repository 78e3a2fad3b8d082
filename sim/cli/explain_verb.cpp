// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "sim/cli/advice_json.h"
#include "sim/cli/advice_text.h"
#include "sim/cli/flops_option.h"
#include "sim/cli/report_text.h"
#include "sim/cli/verbs.h"
#include "sim/core/text.h"
#include "sim/plan/plan_file.h"
#include "sim/plan/plan_json.h"
#include "sim/report/report_json.h"
#include "sim/report/traffic.h"
#include "sim/simulator/simulate.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright::cli {
namespace {

struct ExplainOptions {
  std::string plan, calibration;
  bool force = false;
  std::string rank = "0";
  std::string flops = "model";
  std::string against;
};

/// --against: another plan file of the same problem, or pins that the best layout must have.
Result<RankedPlan> rival_of(const Plan& plan, const std::string& text, const CostModel& cost) {
  std::error_code ec;
  if (std::filesystem::exists(text, ec)) {
    MW_ASSIGN_OR_RETURN(const PlanFile other, read_plan_file(text));
    const std::optional<Plan> same = in_layout(plan, other.plan.layout());
    if (same) return RankedPlan{*same, simulate(*same, cost)};
    return Error{.where = "--against",
                 .field = "against",
                 .value = text,
                 .rule = "its layout is not legal for the model, cluster and workload of the plan"};
  }
  PlannerOptions options{.top_k = 1, .pins = {}, .progress = {}};
  MW_ASSIGN_OR_RETURN(options.pins, parse_layout_pins(text, ""));
  PlannerResult found =
      plan_layouts(std::make_shared<const Problem>(plan.problem()), cost, options);
  if (!found.plans.empty()) return std::move(found.plans.front());
  return Error{.code = ErrorCode::kNegative,
               .where = "--against",
               .field = "against",
               .value = text,
               .rule = found.rejected.empty()
                           ? "no such layout has these degrees"
                           : "no such layout fits: " + found.rejected.front().example};
}

/// The faster of the two is the winner.
struct Duel {
  RankedPlan winner;
  Challenge challenge;
};

Duel duel(const Plan& plan, const Simulation& s, const RankedPlan& rival, const CostModel& cost) {
  const RankedPlan own{plan, s};
  const bool ahead = s.report.step_time <= rival.simulation.report.step_time;
  const RankedPlan& winner = ahead ? own : rival;
  return {winner, challenge(winner, ahead ? rival : own, cost)};
}

Json ledger_json(const ModelSpec& model) {
  Json list = Json::array();
  for (const LedgerEntry& e : parameter_ledger(model)) {
    list.push_back({{"part", e.part},
                    {"attention", e.attention},
                    {"feed_forward", e.feed_forward},
                    {"experts", e.experts},
                    {"norms", e.norms},
                    {"other", e.other},
                    {"total", e.total()}});
  }
  return list;
}

bool same_parts(const LedgerEntry& a, const LedgerEntry& b) {
  return a.attention == b.attention && a.feed_forward == b.feed_forward && a.experts == b.experts &&
         a.norms == b.norms && a.other == b.other;
}

/// One line per run of equal layers.
void print_ledger(const ModelSpec& model) {
  const std::vector<LedgerEntry> ledger = parameter_ledger(model);
  fmt::print("\nparameters: {} in all, {} per token\n",
             parameter_count(model),
             active_parameter_count(model));
  for (size_t i = 0; i < ledger.size();) {
    size_t end = i + 1;
    while (end < ledger.size() && same_parts(ledger[i], ledger[end])) ++end;
    const LedgerEntry& e = ledger[i];
    fmt::print(
        "  {:<24} {:>15} each: attention {}, feed-forward {}, experts {}, norms {}, other {}\n",
        end == i + 1 ? e.part : e.part + " to " + ledger[end - 1].part,
        e.total(),
        e.attention,
        e.feed_forward,
        e.experts,
        e.norms,
        e.other);
    i = end;
  }
}

Result<int> run_explain(const ExplainOptions& o, bool json, const Environment& env) {
  MW_ASSIGN_OR_RETURN(const PlanFile file, read_plan_file(o.plan));
  const Plan& plan = file.plan;
  MW_ASSIGN_OR_RETURN(const int64_t parsed,
                      parse_count("--rank", o.rank, 0, plan.world_size() - 1));
  const auto rank = static_cast<int>(parsed);
  MW_ASSIGN_OR_RETURN(const CostModel cost,
                      load_cost_model(plan.cluster(), o.calibration, o.force, env));
  MW_ASSIGN_OR_RETURN(const FlopDefinition flops, parse_flops(o.flops));
  const Simulation s = simulate(plan, cost);
  const Diagnosis diagnosis = diagnose(plan, s, cost);
  std::optional<Duel> against;
  if (!o.against.empty()) {
    MW_ASSIGN_OR_RETURN(const RankedPlan rival, rival_of(plan, o.against, cost));
    against = duel(plan, s, rival, cost);
  }
  const Mesh mesh(plan.layout());
  const MeshCoord c = mesh.coord(rank);
  // The first rank of the stage stands for its peers in the timeline; memory is this rank's own.
  StepReport report = terms_of_rank(s.timeline, mesh, mesh.rank({.pp = c.pp}));
  const MemoryProfile memory = replay_memory(plan, build_program(plan), rank);
  report.peak_memory = memory.peak;
  report.memory = memory.at_peak;
  report.memory_bound = memory_bound(plan, memory);
  const std::vector<AxisTraffic> traffic = step_traffic(plan, rank);

  if (json) {
    Json document = report_to_json(report);
    document["schema_version"] = kOutputSchemaVersion;
    document["plan_hash"] = file.hash;
    document["layout"] = layout_to_json(plan);
    document["rank"] = rank;
    document["capacity_bytes"] = plan.cluster().capacity().v;
    document["priced_by"] = cost.provenance();
    document["parameters"] = ledger_json(plan.model());
    add_utilization(document, plan, cost, s.report.step_time, flops);
    document["diagnosis"] = advice_json(diagnosis);
    if (against) {
      document["against"] = advice_json(against->challenge);
      document["against"]["winner"] = {
          {"layout", layout_to_json(against->winner.plan)},
          {"step_time_s", against->winner.simulation.report.step_time.v}};
    }
    document["traffic"] = Json::array();
    for (const AxisTraffic& t : traffic) {
      document["traffic"].push_back({{"axis", t.axis},
                                     {"link", t.inside_node ? "intra_node" : "inter_node"},
                                     {"group_size", t.group_size},
                                     {"operations", t.operations},
                                     {"payload_bytes", t.payload.v}});
    }
    print_json(document);
    return 0;
  }
  fmt::print("{} on {}: {}\n", plan.model().name, plan.cluster().name, summary(plan.layout()));
  std::vector<std::string> blocks;
  for (const int stage : plan.stage_map().of_rank(c.pp)) {
    const auto [begin, end] = plan.blocks_of_stage(stage);
    blocks.push_back(fmt::format("{}-{}", begin, end - 1));
  }
  fmt::print("rank {}: stage {}, dp {}, tp {}; blocks {} of {}\n",
             rank,
             c.pp,
             mesh.dp_index(rank),
             c.tp,
             join(blocks),
             num_blocks(plan.model()));
  fmt::print("\ntime of one step (priced by {}):\n{}", cost.provenance(), terms_text(report));
  const Utilization u = utilization(plan, cost, s.report.step_time, flops);
  fmt::print("  {:<14} {:>10.1f} %  {}\n",
             utilization_name(flops),
             100 * utilization_value(u, flops),
             utilization_legend(flops));
  fmt::print("\nmemory of this rank at its peak:\n{}",
             memory_text(report, plan.cluster().capacity()));
  print_ledger(plan.model());
  if (!traffic.empty()) fmt::print("\ntraffic of this rank per step:\n");
  for (const AxisTraffic& t : traffic) {
    fmt::print("  {:<3} {:>6} operations, {:>11} over {} ranks, {}\n",
               t.axis,
               t.operations,
               show(t.payload),
               t.group_size,
               t.inside_node ? "inside a node" : "between nodes");
    if (t.axis == "pp" && t.operations > 0) {
      const Bytes each = t.payload / static_cast<double>(t.operations);
      const BytesPerSecond link =
          t.inside_node ? plan.cluster().intra_node.bandwidth : plan.cluster().inter_node.bandwidth;
      fmt::print("      each {} = {:.4g} MB, {} at {:.3g} GB/s (MB = 1e6, MiB = 2^20)\n",
                 show(each),
                 each.v / 1e6,
                 show(each / link),
                 link.v / 1e9);
    }
  }
  fmt::print("\nfindings for the whole step ({}):\n{}",
             show(s.report.step_time),
             diagnosis_text(plan, s.report.step_time, s.report.peak_memory, diagnosis));
  if (against) {
    fmt::print("\nagainst {}: {} wins with {}; the other:\n{}",
               o.against,
               summary(against->winner.plan.layout()),
               show(against->winner.simulation.report.step_time),
               challenges_text(against->winner, {against->challenge}));
  }
  return 0;
}

}  // namespace

Verb explain_verb(CLI::App& app, const Environment& env) {
  Verb verb = make_verb(app, "explain", "Memory, time and traffic of one rank of a plan");
  auto o = std::make_shared<ExplainOptions>();
  verb.app->add_option("plan", o->plan, "Plan file")->required();
  verb.app->add_option("--rank", o->rank, "Rank to explain")->capture_default_str();
  add_flops_option(*verb.app, o->flops);
  verb.app->add_option(
      "--against",
      o->against,
      "Another plan file, or pins (tp=8,pp=1): what would have to be different for "
      "the slower one to win");
  verb.app->add_option(
      "--calibration", o->calibration, "Calibration file (default: the newest of this machine)");
  verb.app->add_flag("--force", o->force, "Use a calibration of another machine");
  verb.run = [o, json = verb.json, &env] { return run_explain(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
