// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

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
};

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
  const Simulation s = simulate(plan, cost);
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
  }
  return 0;
}

}  // namespace

Verb explain_verb(CLI::App& app, const Environment& env) {
  Verb verb = make_verb(app, "explain", "Memory, time and traffic of one rank of a plan");
  auto o = std::make_shared<ExplainOptions>();
  verb.app->add_option("plan", o->plan, "Plan file")->required();
  verb.app->add_option("--rank", o->rank, "Rank to explain")->capture_default_str();
  verb.app->add_option(
      "--calibration", o->calibration, "Calibration file (default: the newest of this machine)");
  verb.app->add_flag("--force", o->force, "Use a calibration of another machine");
  verb.run = [o, json = verb.json, &env] { return run_explain(*o, *json, env); };
  return verb;
}

}  // namespace meshwright::cli
