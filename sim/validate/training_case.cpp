// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/training_case.h"

#include <algorithm>
#include <cmath>

#include "sim/validate/row_model.h"
#include "sim/validate/training_row.h"
#include "sim/validate/training_stack.h"

namespace meshwright {
namespace {

/// Columns `release_year` (or the year in the framework's name) and `overlap` ("none"), which notes
/// may say in words.
void read_megatron_core(const TrainingRow& r, TrainingCase& c) {
  MegatronCoreRun run{.release_year = static_cast<int>(r.positive("release_year", 0))};
  if (run.release_year == 0) run.release_year = year_in(r.text("framework"));
  run.overlaps = lower_case(r.text("overlap")) != "none" &&
                 !mentions(lower_case(r.text("notes")), "no comm overlap");
  // NVIDIA's tables dropped their FSDP column with the releases of 2026.
  if (run.release_year == 0 && r.text("zero_norm").empty() &&
      mentions(r.text("notes"), "raw row:")) {
    run.release_year = 2026;
  }
  c.release_assumed = run.overlaps && run.release_year == 0;
  c.framework = megatron_core_profile(run);
}

void read_precision(const TrainingRow& r, const std::string& notes, TrainingCase& c) {
  StepWorkload& w = c.problem.work;
  const std::string text = lower_case(r.text("precision"));
  if (mentions(text, "fp4")) {
    w.precision = GemmPrecision::kFp4;
  } else if (mentions(text, "rowwise")) {
    w.precision = GemmPrecision::kFp8Rowwise;
  } else if (mentions(text, "fp8") || mentions(text, "float8")) {
    w.precision = GemmPrecision::kFp8;
  }
  // torchtitan publishes its tensor-parallel figures with torch.compile on.
  w.compiled = mentions(notes, "compile") || mentions(text, "float8") ||
               (c.framework == "torchtitan" && c.layout.shard.tp > 1);
  w.fused_loss = mentions(notes, "fused ce");
  w.async_tp = mentions(notes, "asynctp") || mentions(notes, "async tp");
}

void read_recompute(const TrainingRow& r,
                    const std::string& notes,
                    const std::string& framework,
                    TrainingCase& c) {
  StepWorkload& w = c.problem.work;
  const std::string text = lower_case(r.text("recompute"));
  if (text.empty()) c.inputs_assumed = true;
  if (text == "full") w.recompute = RecomputeKind::kFull;
  if (text == "selective") {
    w.recompute = framework == "torchtitan"
                      ? (mentions(notes, "selective layer") ? RecomputeKind::kHalfLayers
                                                            : RecomputeKind::kOps)
                      : RecomputeKind::kCore;
  }
  const std::string flash = lower_case(r.text("flash_attn"));
  const bool classic = framework == "megatron_classic" || framework == "megatron_deepspeed";
  w.attention = flash == "no" || (classic && !mentions(flash, "yes")) ? AttentionKernel::kUnfused
                                                                      : AttentionKernel::kFlash;
  w.sequence_parallel =
      r.text("sp") == "yes" || (r.text("sp").empty() && framework.starts_with("megatron_core"));
}

void read_schedule(const TrainingRow& r, const std::string& notes, TrainingCase& c) {
  StepLayout& l = c.layout;
  const double layers = c.problem.model.num_layers();
  const std::string vpp = lower_case(r.text("vpp_norm"));
  l.vpp = r.positive("vpp_norm", 1);
  if (vpp == "max") l.vpp = std::max(1.0, std::floor((layers + 2) / l.pp));
  if (r.text("vpp_norm").empty() && mentions(notes, "interleaved 1f1b")) l.vpp = 2;
  if (mentions(notes, "schedule zb-1p")) l.schedule = StepSchedule::kZeroBubble1;
  if (mentions(notes, "schedule zb-2p")) l.schedule = StepSchedule::kZeroBubble2;
  if (mentions(notes, "schedule zb-v")) l.schedule = StepSchedule::kZeroBubbleV;
  // NVIDIA's recipes interleave chunks of about four layers.
  if (r.text("vpp_norm").empty() && c.framework.starts_with("megatron_core")) {
    l.vpp = std::max(1.0, std::round(layers / (4 * l.pp)));
    c.inputs_assumed = true;
  }
  l.balanced = c.framework.starts_with("megatron_core");
  if (l.pp == 1) l.vpp = 1;
}

/// Nothing when the layout is complete and consistent, else the reason.
std::string read_layout(const TrainingRow& r, const std::string& notes, TrainingCase& c) {
  StepLayout& l = c.layout;
  StepWorkload& w = c.problem.work;
  const std::optional<double> gpus = r.number("num_gpus");
  if (!gpus) return "no number of GPUs";
  l.shard.tp = r.positive("tp", 1);
  l.pp = r.positive("pp", 1);
  l.shard.cp = r.positive("cp", 1);
  l.shard.ep = r.positive("ep", 1);
  l.dp = r.positive("dp", *gpus / (l.shard.tp * l.pp * l.shard.cp));
  if (l.dp < 1) return "the layout needs more GPUs than the row has";
  if (std::abs(l.shard.tp * l.pp * l.shard.cp * l.dp - *gpus) > 0.5) {
    return "tp x pp x cp x dp is not the number of GPUs";
  }
  w.global_batch = r.positive("global_batch", 0);
  if (w.global_batch == 0) return "no global batch";
  w.seq = r.positive("seq_len", 0);
  if (w.seq == 0) return "no sequence length";
  const double local = w.global_batch / l.dp;
  // torchtitan splits the local batch into one micro-batch per stage.
  l.shard.micro_batch =
      r.positive("micro_batch", c.framework == "torchtitan" ? std::max(1.0, local / l.pp) : 1);
  l.micro_batches = local / l.shard.micro_batch;
  if (l.micro_batches < 0.999) return "the global batch holds less than one micro-batch per rank";
  const std::string zero(r.text("zero_norm"));
  const bool stated = !zero.empty() && zero[0] >= '0' && zero[0] <= '3';
  l.zero = stated ? zero[0] - '0' : c.framework.starts_with("megatron_core") ? 1 : 0;
  read_schedule(r, notes, c);
  split_layers(c.problem.model.num_layers(), l);
  return {};
}

std::optional<double> measured_step(const TrainingRow& r, const StepWorkload& w) {
  if (const auto s = r.number("measured_step_s"); s && *s > 0) return s;
  const double gpus = r.positive("num_gpus", 0);
  if (const auto rate = r.number("tokens_per_s_per_gpu"); rate && *rate > 0 && gpus > 0) {
    return w.global_batch * w.seq / (*rate * gpus);
  }
  if (const auto s = r.number("derived_step_s"); s && *s > 0) return s;
  return std::nullopt;
}

}  // namespace

TrainingCase training_case(const CsvTable& table, size_t row) {
  const TrainingRow r(table, row);
  TrainingCase c{.id = std::string(r.text("id")),
                 .source = std::string(r.text("source")),
                 .device = std::string(r.text("gpu_norm")),
                 .model = std::string(r.text("model"))};
  const Result<PublishedDevice> device = published_device(c.device);
  c.framework = framework_profile(r.text("framework"), device ? device->device_class : "");
  if (c.framework == "megatron_core") read_megatron_core(r, c);
  if (table.is_broken(row)) {
    c.skipped = "the row has not as many cells as the header";
    return c;
  }
  if (r.text("exclude") == "yes") {
    c.skipped = "excluded: its own figures disagree";
    return c;
  }
  if (!device) {
    c.skipped = "unknown device";
    return c;
  }
  c.device_class = device->device_class;
  c.problem.device = device->facts;
  c.problem.links.devices_per_node = r.positive("gpus_per_node", 8);
  c.problem.links.nic_bandwidth = 1e9 * r.positive("nic_GBps_per_gpu", 25);
  const std::string notes = lower_case(r.text("notes"));
  // A DGX has eight GPUs of these generations, whatever the row says.
  if (mentions(notes, "dgx-h100") || mentions(notes, "dgx-b")) {
    c.problem.links.devices_per_node = 8;
  }
  if (device->facts.nvlink_domain <= 8) {
    c.problem.device.nvlink_domain = c.problem.links.devices_per_node;
  }
  const std::optional<ModelShape> model = row_model(r);
  if (!model) {
    c.skipped = "unknown model without architecture columns";
    return c;
  }
  c.problem.model = *model;
  c.skipped = read_layout(r, notes, c);
  if (!c.skipped.empty()) return c;
  read_precision(r, notes, c);
  read_recompute(r, notes, c.framework, c);
  const std::string name = lower_case(c.model);
  c.problem.work.lora = mentions(name, "lora");
  c.problem.work.offload = r.text("offload") == "yes";
  c.measured_s = measured_step(r, c.problem.work);
  if (!c.measured_s) c.skipped = "no measured time";
  c.rank_group = c.source + "|" + c.model + "|" + c.device + "|" + c.framework;
  for (const char* column : {"num_gpus", "global_batch", "seq_len", "precision"}) {
    c.rank_group += "|" + std::string(r.text(column));
  }
  c.layout_key = c.rank_group;
  for (const char* column : {"tp",
                             "pp",
                             "vpp",
                             "cp",
                             "ep",
                             "dp",
                             "zero_norm",
                             "micro_batch",
                             "recompute",
                             "sp",
                             "flash_attn",
                             "heads"}) {
    c.layout_key += "|" + std::string(r.text(column));
  }
  c.layout_key += "|" + std::to_string(static_cast<int>(c.layout.schedule));
  c.measured_memory_gib = r.number("measured_peak_mem_gib");
  if (r.text("mem_unit") != "GiB") c.memory_unit = "GB";
  c.states = state_convention(c.framework, r.text("precision"));
  return c;
}

double prediction_spread(const TrainingCase& c, const StepConstants& constants) {
  DeviceFacts device;
  FrameworkProfile profile;
  constants.apply(c.framework, c.device_class, device, profile);
  const ModelShape& m = c.problem.model;
  const bool experts = m.kinds[static_cast<size_t>(m.num_kinds - 1)].ffn.num_experts > 0;
  // The releases differ in how experts are issued and dispatched on Blackwell, and nowhere else.
  const bool release_matters = experts && c.device_class.starts_with("blackwell");
  return std::exp(profile.spread * (experts ? profile.spread_experts : 1) *
                  (c.inputs_assumed ? profile.spread_assumed : 1) *
                  (c.release_assumed && release_matters ? profile.spread_assumed : 1));
}

StepTerms predict_case(const TrainingCase& c, const StepConstants& constants) {
  StepProblem problem = c.problem;
  constants.apply(c.framework, c.device_class, problem.device, problem.framework);
  const ShardCost cost = price_shard(problem, c.layout.shard);
  return evaluate_step(problem, cost, c.layout);
}

}  // namespace meshwright
