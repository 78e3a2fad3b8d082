// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/functional_case.h"

#include <algorithm>
#include <cmath>

#include "sim/core/units.h"
#include "sim/validate/training_stack.h"

namespace meshwright {
namespace {

constexpr double kTestGpus = 8;

/// Tests of other model families and of reinforcement learning.
bool is_language_model_pretraining(std::string_view name) {
  return (name.starts_with("gpt/") || name.starts_with("moe/") || name.starts_with("mixtral/")) &&
         !mentions(name, "grpo");
}

/// Padded to a multiple of 128 tp, as Megatron-LM does.
double padded_vocab(std::string_view name, double tp) {
  const double logical = mentions(name, "mixtral_8x")   ? 32000
                         : mentions(name, "deepseekv3") ? 129280
                                                        : 50257;
  return std::ceil(logical / (128 * tp)) * 128 * tp;
}

ModelShape test_model(const CsvTable& t, size_t row, std::string_view name, double tp) {
  const double h = t.positive_or(row, "h", 0);
  const double heads = t.positive_or(row, "heads", std::max(1.0, h / 128));
  const bool llama_like =
      mentions(name, "mixtral") || mentions(name, "swiglu") || mentions(name, "deepseek");
  ModelShape m{
      .hidden = h,
      .vocab = padded_vocab(name, tp),
      .position_rows = llama_like || mentions(name, "rope") ? 0 : t.positive_or(row, "seq", 0),
      .tied_embeddings = !mentions(name, "untie") && !mentions(name, "mixtral/"),
      .gated_ffn = llama_like,
      .bias = !llama_like && !mentions(name, "disable_bias"),
      .dropout = llama_like ? 0 : 0.1};
  const double ffn = t.positive_or(row, "ffn", 4 * h);
  BlockShape block{.count = t.positive_or(row, "L", 0),
                   .attention = {.num_heads = heads,
                                 .num_kv_heads = t.positive_or(row, "kv", heads),
                                 .head_dim = h / heads,
                                 .v_head_dim = h / heads}};
  if (const double experts = t.positive_or(row, "exp", 0); experts > 0) {
    block.ffn = {.num_experts = experts, .top_k = 2, .expert_width = ffn};
  } else {
    block.ffn = {.width = ffn};
  }
  m.add(block);
  return m;
}

}  // namespace

TrainingCase functional_case(const CsvTable& t, size_t row) {
  const std::string name(t.cell(row, "case"));
  TrainingCase c{.id = name,
                 .source = "Megatron-LM functional tests",
                 .device = "h100-80g",
                 .model = name,
                 .framework = "megatron_core_test"};
  c.measured_s = t.number(row, "it");
  if (const auto bytes = t.number(row, "mem")) c.measured_memory_gib = *bytes / kBytesPerGiB;
  StepLayout& l = c.layout;
  StepWorkload& w = c.problem.work;
  l.shard.tp = t.positive_or(row, "tp", 1);
  l.shard.cp = t.positive_or(row, "cp", 1);
  l.shard.ep = t.positive_or(row, "ep", 1);
  l.pp = t.positive_or(row, "pp", 1);
  l.vpp = l.pp > 1 ? t.positive_or(row, "vpp", 1) : 1;
  const double others = l.shard.tp * l.shard.cp * l.pp;
  l.dp = std::floor(kTestGpus / others);
  w.seq = t.positive_or(row, "seq", 0);
  w.global_batch = t.positive_or(row, "gbs", 0);
  l.shard.micro_batch = t.positive_or(row, "mbs", 1);
  if (!is_language_model_pretraining(name)) {
    c.skipped = "not pre-training of a decoder-only language model";
  } else if (t.is_broken(row) || t.positive_or(row, "L", 0) == 0 || w.seq == 0 ||
             w.global_batch == 0) {
    c.skipped = "no layers, sequence length or batch";
  } else if (l.dp < 1 || l.shard.ep > l.dp * l.shard.cp * l.shard.tp || mentions(name, "release")) {
    c.skipped = "needs more than 8 GPUs, whose number is not given";
  } else if (mentions(name, "offloading") || mentions(name, "fsdp")) {
    c.skipped = "offloads activations or shards fully";
  }
  if (!c.skipped.empty()) return c;

  l.micro_batches = std::max(1.0, w.global_batch / (l.dp * l.shard.micro_batch));
  l.zero = t.cell(row, "do") == "true" ? 1 : 0;
  c.problem.model = test_model(t, row, name, l.shard.tp);
  split_layers(c.problem.model.num_layers(), l);
  w.sequence_parallel = t.cell(row, "sp") == "true" && l.shard.tp > 1;
  if (t.cell(row, "rc") == "selective") w.recompute = RecomputeKind::kCore;
  if (mentions(name, "fp8")) w.precision = GemmPrecision::kFp8;
  // The local specification attends without a fused kernel.
  const bool fused = mentions(name, "_te_") || mentions(name, "mixtral") || mentions(name, "speed");
  w.attention = fused ? AttentionKernel::kFlash : AttentionKernel::kUnfused;
  c.states = t.cell(row, "bf16") == "true" ? StateConvention::kMegatron : StateConvention::kFp32;

  const Result<PublishedDevice> device = published_device(c.device);
  MW_CHECK(device.has_value());
  c.device_class = device->device_class;
  c.problem.device = device->facts;
  c.problem.links.nic_bandwidth = 50e9;
  if (!c.measured_s) c.skipped = "no measured time";
  return c;
}

}  // namespace meshwright
