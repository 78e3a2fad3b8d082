// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan_file.h"

#include <fmt/format.h>

#include "sim/core/hash.h"
#include "sim/plan/plan_json.h"
#include "sim/report/report_json.h"
#include "sim/spec/cluster_json.h"
#include "sim/spec/hf_config_json.h"
#include "sim/spec/lora_json.h"

namespace meshwright {
namespace {

constexpr int kSchemaVersion = 1;

Json model_to_json(const ModelSpec& m) {
  Json json = hf_config_json(m);
  json["name"] = m.name;
  return json;
}

Json workload_to_json(const Workload& w) {
  Json json = {{"name", w.name},
               {"kind", w.kind == WorkloadKind::kSft ? "sft" : "pretrain"},
               {"seq_len", w.seq_len},
               {"global_batch_sequences", w.global_batch},
               {"precision", to_string(w.precision)},
               {"learning_rate", w.optimizer.learning_rate},
               {"warmup_steps", w.optimizer.warmup_steps},
               {"beta1", w.optimizer.beta1},
               {"beta2", w.optimizer.beta2},
               {"eps", w.optimizer.eps},
               {"weight_decay", w.optimizer.weight_decay},
               {"max_grad_norm", w.optimizer.max_grad_norm},
               {"seed", w.seed}};
  if (w.tokens) json["tokens"] = *w.tokens;
  if (w.lora) json["lora"] = lora_to_json(*w.lora);
  if (!w.document_lengths.empty()) json["document_lengths"] = w.document_lengths;
  return json;
}

Result<Workload> workload_from_json(const Json& json, const std::string& origin) {
  ObjectReader r(json, origin, "/decision/workload");
  Workload w;
  w.name = r.text("name");
  w.kind = r.choice("kind", {"pretrain", "sft"}, "") == "sft" ? WorkloadKind::kSft
                                                              : WorkloadKind::kPretrain;
  w.seq_len = r.integer("seq_len", {1, 1e9});
  w.global_batch = r.integer("global_batch_sequences", {1, 1e12});
  w.precision = r.word("precision", kPrecisionNames);
  w.optimizer = {.learning_rate = r.number("learning_rate", {0, 10}),
                 .warmup_steps = r.integer("warmup_steps", {0, 1e9}),
                 .beta1 = r.number("beta1", {0, 1}),
                 .beta2 = r.number("beta2", {0, 1}),
                 .eps = r.number("eps", {0, 1}),
                 .weight_decay = r.number("weight_decay", {0, 10}),
                 .max_grad_norm = r.number("max_grad_norm", {0, 1e9})};
  w.seed = static_cast<uint64_t>(r.integer("seed", {0, 9e15}));
  w.tokens = r.optional_number("tokens", {1, 1e18});
  w.document_lengths = r.integers_or_empty("document_lengths", {1, 1e9});
  if (r.has("lora")) {
    MW_ASSIGN_OR_RETURN(w.lora,
                        lora_from_json(r.object("lora"), origin, "/decision/workload/lora", {}));
  }
  MW_RETURN_IF_ERROR(r.finish());
  return w;
}

Json decision_to_json(const Plan& plan) {
  return {{"model", model_to_json(plan.model())},
          {"cluster", cluster_to_json(plan.cluster())},
          {"workload", workload_to_json(plan.workload())},
          {"layout", layout_to_json(plan)}};
}

/// nlohmann's objects are sorted by key and its doubles print shortest-exact, so the dump is
/// canonical.
std::string hash_of(const Json& decision) { return hex(fnv1a(decision.dump())); }

}  // namespace

std::string plan_hash(const Plan& plan) { return hash_of(decision_to_json(plan)); }

std::string to_json_text(const PlanFile& file) {
  Json json = {{"schema_version", kSchemaVersion},
               {"plan_hash", file.hash},
               {"decision", decision_to_json(file.plan)},
               {"provenance",
                {{"tool_version", file.provenance.tool_version},
                 {"date", file.provenance.date},
                 {"calibration_id", file.provenance.calibration_id}}}};
  if (file.predicted) json["predicted"] = report_to_json(*file.predicted);
  return json.dump(2) + "\n";
}

Result<Ok> write_plan_file(const std::string& path, const PlanFile& file) {
  return write_text_file(path, to_json_text(file));
}

Result<PlanFile> read_plan_file(const std::string& path) {
  MW_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  MW_ASSIGN_OR_RETURN(const Json json, parse_json(text, path));
  ObjectReader r(json, path);
  r.integer("schema_version", {kSchemaVersion, kSchemaVersion});
  const std::string hash = r.text("plan_hash");
  const Json& decision = r.object("decision");
  const Json& provenance = r.object("provenance");
  const bool has_prediction = r.has("predicted");
  const Json& predicted = r.object("predicted", false);
  MW_RETURN_IF_ERROR(r.finish());
  if (const std::string actual = hash_of(decision); actual != hash) {
    return Error{.where = path + "#/plan_hash",
                 .field = "plan_hash",
                 .value = hash,
                 .rule = "does not match the decision in the file (" + actual +
                         "): it was edited after planning",
                 .remedy = "plan again with the change as flags"};
  }
  ObjectReader d(decision, path, "/decision");
  const Json& model = d.object("model");
  const Json& cluster = d.object("cluster");
  const Json& workload = d.object("workload");
  const Json& layout = d.object("layout");
  MW_RETURN_IF_ERROR(d.finish());

  auto problem = std::make_shared<Problem>();
  ObjectReader named(model, path, "/decision/model");
  const std::string name = named.text("name");
  MW_RETURN_IF_ERROR(named.finish(false));
  MW_ASSIGN_OR_RETURN(problem->model, parse_hf_config(model.dump(), path, name));
  MW_ASSIGN_OR_RETURN(problem->cluster, cluster_from_json(cluster, path, "/decision/cluster"));
  MW_ASSIGN_OR_RETURN(problem->workload, workload_from_json(workload, path));
  MW_ASSIGN_OR_RETURN(const Layout l, layout_from_json(layout, path, "/decision/layout"));
  ValidationOutcome outcome = validate(std::move(problem), l);
  if (!outcome.plan) {
    Error e = outcome.violations.front();
    e.where = path + "#/decision" + e.where;
    return e;
  }
  PlanFile file{
      .plan = *std::move(outcome.plan), .hash = hash, .predicted = std::nullopt, .provenance = {}};
  ObjectReader p(provenance, path, "/provenance");
  file.provenance = {.tool_version = p.text("tool_version"),
                     .date = p.text("date"),
                     .calibration_id = p.text("calibration_id")};
  MW_RETURN_IF_ERROR(p.finish());
  if (has_prediction) {
    MW_ASSIGN_OR_RETURN(file.predicted, report_from_json(predicted, path, "/predicted"));
  }
  return file;
}

}  // namespace meshwright
