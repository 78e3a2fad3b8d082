// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "sim/parity/parity.h"
#include "sim/planner/planner.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {
namespace {

constexpr int64_t kSeqLen = 16;
constexpr int64_t kGlobalBatch = 8;
constexpr int kMaxRanks = 8;
constexpr double kEnoughMemory = 1e12;

ModelSpec small_model(const char* name) {
  ModelSpec m;
  m.name = name;
  m.vocab_size = 53;  // a prime: no tp divides it
  m.d_model = 48;
  m.d_ff = 80;
  m.num_layers = 4;
  m.num_heads = 8;
  m.num_kv_heads = 8;
  m.head_dim = 8;  // not d_model / num_heads
  m.max_seq_len = 64;
  return m;
}

ModelSpec dense() { return small_model("dense"); }

/// Two key/value heads: shared by several ranks once tp > 2.
ModelSpec grouped() {
  ModelSpec m = small_model("grouped");
  m.num_kv_heads = 2;
  return m;
}

ModelSpec tied() {
  ModelSpec m = grouped();
  m.name = "tied";
  m.tied_embeddings = true;
  return m;
}

/// Qwen2: biases on q, k, v; tied; a feed-forward width that tp 4 does not divide.
ModelSpec biased() {
  ModelSpec m = tied();
  m.name = "biased";
  m.family = ModelFamily::kQwen2;
  m.qkv_bias = true;
  m.d_ff = 70;
  return m;
}

/// Qwen3: a norm over each query and key head.
ModelSpec normed() {
  ModelSpec m = grouped();
  m.name = "normed";
  m.family = ModelFamily::kQwen3;
  m.qk_norm = true;
  return m;
}

/// GPT-2: LayerNorm, learned positions, GELU, a bias on every projection, dropout; tied.
ModelSpec gpt() {
  ModelSpec m = small_model("gpt");
  m.family = ModelFamily::kGpt2;
  m.norm = NormKind::kLayerNorm;
  m.ffn = FfnKind::kGelu;
  m.positions = PositionKind::kLearned;
  m.position_rows = m.max_seq_len;
  m.linear_bias = true;
  m.tied_embeddings = true;
  m.d_ff = 70;
  m.dropout = 0.1;
  return m;
}

ClusterSpec local_cluster(int ranks) {
  ClusterSpec c;
  c.name = std::to_string(ranks) + "xlocal";
  c.num_devices = ranks;
  c.devices_per_node = ranks;
  c.device.name = "local";
  c.device.kind = DeviceKind::kCpu;
  c.device.peak_bf16 = c.device.peak_fp32 = FlopPerSecond{1e11};
  c.device.memory_bandwidth = BytesPerSecond{1e10};
  c.device.memory = Bytes{kEnoughMemory};
  c.intra_node = {.bandwidth = BytesPerSecond{1e9},
                  .efficiency = 1,
                  .alpha = Seconds{1e-4},
                  .base = Seconds{1e-4}};
  c.shared_cores = 2;
  return c;
}

std::shared_ptr<const Problem> small_problem(const ModelSpec& model, int ranks) {
  auto p = std::make_shared<Problem>();
  p->model = model;
  p->cluster = local_cluster(ranks);
  p->workload.name = "parity";
  p->workload.seq_len = kSeqLen;
  p->workload.global_batch = kGlobalBatch;
  p->workload.precision = Precision::kFp32;
  p->workload.optimizer.learning_rate = 1e-3;
  return p;
}

/// Adds the case; its layout must be legal.
void add(std::vector<Plan>& out, const ModelSpec& model, Layout layout) {
  layout.precision = Precision::kFp32;
  const auto outcome =
      validate(small_problem(model, static_cast<int>(layout.world_size())), layout);
  MW_CHECK(outcome.plan.has_value(),
           outcome.violations.empty() ? "" : to_string(outcome.violations.front()));
  out.push_back(*outcome.plan);
}

}  // namespace

std::vector<Plan> slice_suite() {
  constexpr auto kFull = Recompute::kFull;
  constexpr auto kGpipe = ScheduleKind::kGpipe;
  std::vector<Plan> s;
  // One rank: accumulation and recompute.
  add(s, dense(), {.micro_batch = 2});
  add(s, grouped(), {.micro_batch = 1, .recompute = kFull});
  add(s, tied(), {.micro_batch = 8});
  // Two ranks.
  add(s, dense(), {.dp_replicate = 2, .micro_batch = 2});
  add(s, grouped(), {.dp_shard = 2, .micro_batch = 1, .zero_stage = 1});
  add(s, dense(), {.tp = 2, .micro_batch = 2});
  add(s, grouped(), {.tp = 2, .sp = true, .micro_batch = 2});
  add(s, biased(), {.tp = 2, .micro_batch = 4, .recompute = kFull});
  add(s, dense(), {.pp = 2, .micro_batch = 2});
  add(s, grouped(), {.pp = 2, .micro_batch = 1, .schedule = kGpipe});
  add(s, tied(), {.pp = 2, .micro_batch = 2, .stages = {3, 1}});
  // Four ranks.
  add(s, grouped(), {.tp = 4, .micro_batch = 2});
  add(s, grouped(), {.tp = 4, .sp = true, .micro_batch = 2, .recompute = kFull});
  add(s, biased(), {.tp = 4, .micro_batch = 1});
  add(s, dense(), {.dp_replicate = 2, .dp_shard = 2, .micro_batch = 1, .zero_stage = 1});
  add(s, dense(), {.dp_replicate = 4, .micro_batch = 1});
  add(s, tied(), {.dp_replicate = 2, .tp = 2, .micro_batch = 2});
  add(s, tied(), {.dp_shard = 2, .tp = 2, .sp = true, .micro_batch = 1, .zero_stage = 1});
  add(s, biased(), {.tp = 2, .sp = true, .pp = 2, .micro_batch = 2});
  add(s, tied(), {.tp = 2, .pp = 2, .micro_batch = 2, .recompute = kFull, .schedule = kGpipe});
  add(s, grouped(), {.dp_shard = 2, .pp = 2, .micro_batch = 1, .zero_stage = 1, .stages = {1, 3}});
  add(s, dense(), {.pp = 4, .micro_batch = 1});
  add(s, tied(), {.pp = 4, .micro_batch = 1, .schedule = kGpipe});
  add(s, tied(), {.pp = 3, .micro_batch = 2, .stages = {1, 2, 1}});
  // Virtual stages and split backward.
  constexpr auto kInterleaved = ScheduleKind::kInterleaved;
  add(s, tied(), {.pp = 2, .virtual_stages = 2, .micro_batch = 1, .schedule = kInterleaved});
  add(s,
      grouped(),
      {.dp_shard = 2,
       .pp = 2,
       .virtual_stages = 2,
       .micro_batch = 1,
       .zero_stage = 1,
       .recompute = kFull,
       .schedule = kInterleaved});
  add(s,
      biased(),
      {.tp = 2, .sp = true, .pp = 2, .micro_batch = 2, .schedule = ScheduleKind::kZbH1});
  add(s, dense(), {.pp = 4, .micro_batch = 1, .schedule = ScheduleKind::kZbH2});
  add(s, tied(), {.dp_replicate = 2, .pp = 2, .virtual_stages = 2, .schedule = ScheduleKind::kZbV});
  add(s, tied(), {.pp = 4, .micro_batch = 1, .schedule = ScheduleKind::kDualPipe});
  add(s,
      grouped(),
      {.dp_shard = 2,
       .pp = 2,
       .micro_batch = 1,
       .zero_stage = 1,
       .recompute = kFull,
       .schedule = ScheduleKind::kDualPipe});
  // Other families.
  add(s, normed(), {.tp = 2, .micro_batch = 2});
  add(s, normed(), {.dp_shard = 2, .tp = 4, .sp = true, .micro_batch = 1, .zero_stage = 1});
  add(s,
      normed(),
      {.pp = 2, .micro_batch = 1, .recompute = kFull, .schedule = ScheduleKind::kZbH1});
  add(s, gpt(), {.tp = 2, .micro_batch = 2, .recompute = kFull});
  add(s, gpt(), {.tp = 4, .sp = true, .pp = 2, .micro_batch = 2});
  add(s, gpt(), {.dp_shard = 2, .micro_batch = 2, .zero_stage = 3});
  add(s, gpt(), {.pp = 2, .micro_batch = 1, .schedule = ScheduleKind::kZbH1});
  // Sharded gradients and weights.
  add(s, grouped(), {.dp_shard = 2, .micro_batch = 1, .zero_stage = 2});
  add(s, tied(), {.dp_shard = 4, .micro_batch = 1, .zero_stage = 3});
  add(s,
      biased(),
      {.dp_shard = 2, .tp = 2, .sp = true, .micro_batch = 1, .zero_stage = 3, .prefetch = 2});
  add(s, tied(), {.dp_shard = 2, .pp = 2, .micro_batch = 2, .zero_stage = 2, .recompute = kFull});
  add(s,
      grouped(),
      {.dp_replicate = 2,
       .dp_shard = 2,
       .micro_batch = 1,
       .zero_stage = 3,
       .persistence_threshold = 100,
       .recompute = kFull});
  add(s,
      tied(),
      {.dp_shard = 2,
       .pp = 2,
       .virtual_stages = 2,
       .micro_batch = 1,
       .zero_stage = 3,
       .reshard = false,
       .schedule = kInterleaved});
  // Eight ranks.
  add(s, dense(), {.tp = 8, .micro_batch = 2});
  add(s, biased(), {.tp = 8, .sp = true, .micro_batch = 1});
  add(s, tied(), {.dp_replicate = 2, .tp = 2, .pp = 2, .micro_batch = 1});
  add(s,
      biased(),
      {.dp_shard = 2,
       .tp = 2,
       .sp = true,
       .pp = 2,
       .micro_batch = 1,
       .zero_stage = 1,
       .recompute = kFull});
  add(s,
      tied(),
      {.dp_replicate = 2,
       .dp_shard = 2,
       .pp = 2,
       .micro_batch = 1,
       .zero_stage = 1,
       .schedule = kGpipe});
  add(s, grouped(), {.tp = 4, .sp = true, .pp = 2, .micro_batch = 2, .stages = {3, 1}});
  return s;
}

std::vector<Plan> random_suite(int count, uint64_t seed) {
  std::vector<std::pair<std::shared_ptr<const Problem>, Layout>> legal;
  for (const ModelSpec& model : {dense(), grouped(), tied(), biased(), normed(), gpt()}) {
    for (int ranks = 1; ranks <= kMaxRanks; ++ranks) {
      const auto problem = small_problem(model, ranks);
      for (const Layout& l : enumerate_layouts(*problem, {})) {
        if (validate(problem, l).plan) legal.emplace_back(problem, l);
      }
    }
  }
  std::mt19937_64 random(seed);
  std::vector<Plan> out;
  for (int i = 0; i < count; ++i) {
    auto [problem, layout] = legal[random() % legal.size()];
    // Uneven stages: move layers from one stage to another while each keeps one.
    layout.stages = balanced_stages(problem->model.num_layers, layout.num_parts());
    int& from = layout.stages[random() % layout.stages.size()];
    int& to = layout.stages[random() % layout.stages.size()];
    if (from > 1) {
      --from;
      ++to;
    }
    // What no search varies.
    if (layout.recompute == Recompute::kFull)
      layout.recompute_layers = static_cast<int>(random() % 3);
    layout.prefetch = static_cast<int>(random() % 4);
    layout.reshard = random() % 3 != 0;
    layout.persistence_threshold = random() % 2 == 0 ? 0 : 100;
    out.push_back(*validate(problem, layout).plan);
  }
  return out;
}

Result<PlanCase> parity_case_of(const Plan& plan) {
  constexpr int64_t kFewParameters = 20'000'000;
  if (plan.cluster().is_local() && plan.world_size() <= kMaxRanks &&
      parameter_count(plan.model()) <= kFewParameters &&
      plan.layout().precision == Precision::kFp32) {
    return PlanCase{plan, false};
  }
  Layout l = plan.layout();
  l.dp_replicate = std::min(l.dp_replicate, 2);
  l.dp_shard = std::min(l.dp_shard, 2);
  l.tp = std::min(l.tp, 2);
  l.pp = std::min(l.pp, 2);
  l.virtual_stages = std::min(l.virtual_stages, 2);
  if (kGlobalBatch / l.dp() < min_micro_batches(l.schedule, l.pp)) l.dp_replicate = 1;
  if (l.world_size() > kMaxRanks) l.dp_replicate = 1;
  l.sp = l.sp && l.tp > 1;
  l.micro_batch = 1;
  l.precision = Precision::kFp32;
  l.stages.clear();
  ModelSpec m = plan.model().qkv_bias          ? biased()
                : plan.model().tied_embeddings ? tied()
                                               : grouped();
  m.tied_embeddings = plan.model().tied_embeddings;
  m.num_kv_heads =
      plan.model().num_kv_heads == plan.model().num_heads ? m.num_heads : m.num_kv_heads;
  m.name = plan.model().name + " at reduced width";
  const auto outcome = validate(small_problem(m, static_cast<int>(l.world_size())), l);
  if (!outcome.plan) return outcome.violations.front();
  return PlanCase{*outcome.plan, true};
}

Plan reference_of(const Plan& plan) {
  auto problem = std::make_shared<Problem>(plan.problem());
  problem->cluster.num_devices = 1;
  problem->cluster.devices_per_node = 1;
  const auto outcome = validate(problem, Layout{.micro_batch = 1, .precision = Precision::kFp32});
  MW_CHECK(outcome.plan.has_value());
  return *outcome.plan;
}

}  // namespace meshwright
