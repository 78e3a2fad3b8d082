// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan_file.h"

#include <fmt/format.h>

#include "sim/core/hash.h"
#include "sim/plan/plan_json.h"
#include "sim/report/report_json.h"
#include "sim/spec/hf_config_json.h"

namespace meshwright {
namespace {

constexpr int kSchemaVersion = 1;
constexpr double kFileGiga = 1e9;
constexpr double kFileTera = 1e12;
constexpr double kFileMicro = 1e-6;

Json model_to_json(const ModelSpec& m) {
  Json json = hf_config_json(m);
  json["name"] = m.name;
  return json;
}

Json link_to_json(const LinkSpec& l) {
  return {{"bandwidth_GBps", l.bandwidth.v / kFileGiga},
          {"efficiency", l.efficiency},
          {"alpha_us", l.alpha.v / kFileMicro},
          {"base_us", l.base.v / kFileMicro},
          {"generation", l.generation}};
}

/// In the form of a document of models/hardware, plus what load_cluster() adds.
Json cluster_to_json(const ClusterSpec& c) {
  const DeviceSpec& d = c.device;
  Json json = {{"name", c.name},
               {"device", d.name},
               {"kind", d.kind == DeviceKind::kCpu ? "cpu" : "gpu"},
               {"num_devices", c.num_devices},
               {"devices_per_node", c.devices_per_node},
               {"peak_bf16_TFLOPs", d.peak_bf16.v / kFileTera},
               {"peak_fp32_TFLOPs", d.peak_fp32.v / kFileTera},
               {"peak_fp8_TFLOPs", d.peak_fp8.v / kFileTera},
               {"host_GBps", d.host_bandwidth.v / kFileGiga},
               {"host_memory_bytes", d.host_memory.v},
               {"nvme_GBps", d.nvme_bandwidth.v / kFileGiga},
               {"memory_bandwidth_GBps", d.memory_bandwidth.v / kFileGiga},
               {"memory_bytes", d.memory.v},
               {"reserved_bytes", d.reserved.v},
               {"num_sms", d.num_sms},
               {"matmul_fraction", d.matmul_fraction},
               {"attention_forward_fraction", d.attention_forward_fraction},
               {"attention_backward_fraction", d.attention_backward_fraction},
               {"memory_fraction", d.memory_fraction},
               {"launch_us", d.launch.v / kFileMicro},
               {"host_per_layer_us", d.host_per_layer.v / kFileMicro},
               {"host_per_micro_batch_us", d.host_per_micro_batch.v / kFileMicro},
               {"scale_slowdown_per_doubling", c.scale_slowdown_per_doubling},
               {"intra_node", link_to_json(c.intra_node)}};
  if (c.inter_node.bandwidth.v > 0) json["inter_node"] = link_to_json(c.inter_node);
  if (c.shared_cores) json["shared_cores"] = *c.shared_cores;
  if (c.price_usd_per_device_hour) json["price_usd_per_device_hour"] = *c.price_usd_per_device_hour;
  return json;
}

LinkSpec link_from_json(const Json& json,
                        const std::string& origin,
                        const std::string& pointer,
                        std::optional<Error>& error) {
  ObjectReader r(json, origin, pointer);
  LinkSpec l;
  l.bandwidth = BytesPerSecond{r.number("bandwidth_GBps", kPositiveQuantity) * kFileGiga};
  l.efficiency = r.number("efficiency", {1e-6, 1});
  l.alpha = Seconds{r.number("alpha_us", kNonNegative) * kFileMicro};
  l.base = Seconds{r.number("base_us", kNonNegative) * kFileMicro};
  l.generation = r.text_or("generation", "");
  if (auto done = r.finish(); !done) error = done.error();
  return l;
}

Result<ClusterSpec> cluster_from_json(const Json& json, const std::string& origin) {
  ObjectReader r(json, origin, "/decision/cluster");
  ClusterSpec c;
  DeviceSpec& d = c.device;
  c.name = r.text("name");
  d.name = r.text("device");
  d.kind = r.choice("kind", {"gpu", "cpu"}, "") == "cpu" ? DeviceKind::kCpu : DeviceKind::kGpu;
  c.num_devices = static_cast<int>(r.integer("num_devices", {1, 1e6}));
  c.devices_per_node = static_cast<int>(r.integer("devices_per_node", {1, 1e6}));
  d.peak_bf16 = FlopPerSecond{r.number("peak_bf16_TFLOPs", kPositiveQuantity) * kFileTera};
  d.peak_fp32 = FlopPerSecond{r.number("peak_fp32_TFLOPs", kPositiveQuantity) * kFileTera};
  d.peak_fp8 = FlopPerSecond{r.number_or("peak_fp8_TFLOPs", 0, kNonNegative) * kFileTera};
  d.host_bandwidth = BytesPerSecond{r.number_or("host_GBps", 0, kNonNegative) * kFileGiga};
  d.host_memory = Bytes{r.number_or("host_memory_bytes", 0, kNonNegative)};
  d.nvme_bandwidth = BytesPerSecond{r.number_or("nvme_GBps", 0, kNonNegative) * kFileGiga};
  d.memory_bandwidth =
      BytesPerSecond{r.number("memory_bandwidth_GBps", kPositiveQuantity) * kFileGiga};
  d.memory = Bytes{r.number("memory_bytes", kPositiveQuantity)};
  d.reserved = Bytes{r.number("reserved_bytes", kNonNegative)};
  d.num_sms = static_cast<int>(r.integer("num_sms", {1, 1e5}));
  d.matmul_fraction = r.number("matmul_fraction", {1e-6, 1});
  d.attention_forward_fraction = r.number("attention_forward_fraction", {1e-6, 1});
  d.attention_backward_fraction = r.number("attention_backward_fraction", {1e-6, 1});
  d.memory_fraction = r.number("memory_fraction", {1e-6, 1});
  d.launch = Seconds{r.number("launch_us", kNonNegative) * kFileMicro};
  d.host_per_layer = Seconds{r.number("host_per_layer_us", kNonNegative) * kFileMicro};
  d.host_per_micro_batch = Seconds{r.number("host_per_micro_batch_us", kNonNegative) * kFileMicro};
  c.scale_slowdown_per_doubling = r.number("scale_slowdown_per_doubling", {0, 1});
  std::optional<Error> error;
  c.intra_node =
      link_from_json(r.object("intra_node"), origin, "/decision/cluster/intra_node", error);
  if (r.has("inter_node"))
    c.inter_node =
        link_from_json(r.object("inter_node"), origin, "/decision/cluster/inter_node", error);
  if (r.has("shared_cores")) c.shared_cores = static_cast<int>(r.integer("shared_cores", {1, 1e5}));
  c.price_usd_per_device_hour = r.optional_number("price_usd_per_device_hour", kNonNegative);
  MW_RETURN_IF_ERROR(r.finish());
  if (error) return *error;
  return c;
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
  if (w.lora) json["lora"] = {{"rank", w.lora->rank}, {"base", kBaseFormatNames(w.lora->base)}};
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
  if (r.has("lora")) {
    ObjectReader lora(r.object("lora"), origin, "/decision/workload/lora");
    w.lora = LoraSpec{.rank = static_cast<int>(lora.integer("rank", {1, 65536})),
                      .base = lora.word("base", kBaseFormatNames)};
    MW_RETURN_IF_ERROR(lora.finish());
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
          {"persistence_threshold", l.persistence_threshold},
          {"reduce_bucket", l.reduce_bucket},
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
  l.persistence_threshold = r.integer_or("persistence_threshold", 0, {0, 1e12});
  l.reduce_bucket = r.integer_or("reduce_bucket", 0, {0, 1e12});
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
  MW_ASSIGN_OR_RETURN(problem->cluster, cluster_from_json(cluster, path));
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
