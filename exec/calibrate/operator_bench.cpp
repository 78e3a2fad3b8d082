// SPDX-License-Identifier: Apache-2.0
#include "exec/calibrate/operator_bench.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <tuple>

#include "exec/calibrate/line_fit.h"
#include "exec/data/sample_source.h"
#include "exec/runtime/trainer.h"
#include "kernels/elementwise/elementwise.h"

namespace meshwright {
namespace {

constexpr int kMicroBatches = 2;
constexpr std::chrono::minutes kTimeout{5};

/// What tells two operators apart: kind, m, n, k, and bytes.
using OperatorKey = std::tuple<OpKind, int64_t, int64_t, int64_t, double>;

struct OperatorTimings {
  double flop = 0;
  std::vector<double> seconds;
};

/// What one model's steps gave on this rank.
struct ModelTimings {
  std::map<OperatorKey, OperatorTimings> operators;
  double parameters = 0;
  std::vector<double> optimizer_s;
  std::vector<double> compute_s;  ///< Per step, all operators.
  std::vector<double> host_per_operator_s;
  std::vector<double> gap_per_action_s;
};

ModelTimings run_model(const BenchModel& bench) {
  const Plan plan = bench_plan(bench, 1, false);
  const auto samples = random_source(bench.vocab_size, bench.seq_len, 1);
  const auto alone = CommWorld::connect("file:unused", 0, 1, kTimeout);
  ModelTimings out;
  bool recording = false;
  int64_t count = 0;
  TrainerOptions options;
  options.on_operator = [&](const Operator& op, double seconds) {
    ++count;
    if (!recording) return;
    OperatorTimings& t = out.operators[{op.kind, op.m, op.n, op.k, op.bytes.v}];
    t.flop = op.flop.v;
    t.seconds.push_back(seconds);
  };
  Trainer trainer(plan, *alone, *samples, options);
  out.parameters = static_cast<double>(trainer.placement().padded_parameters());
  for (int run = 0; run < kBenchWarmupSteps + kBenchSteps; ++run) {
    recording = run >= kBenchWarmupSteps;
    count = 0;
    const StepResult step = trainer.step(run);
    if (!recording) continue;
    double optimizer = 0;
    double compute = 0;
    double host = 0;
    double covered = 0;
    const double first_action =
        step.timeline.spans.front().start_s;  // zeroing gradients comes before
    for (const Span& s : step.timeline.spans) {
      const double d = s.end_s - s.start_s;
      covered += d;
      if (s.action.kind == ActionKind::kOptimizer) optimizer += d;
      if (s.action.kind == ActionKind::kForward || s.action.kind == ActionKind::kBackward) {
        compute += s.compute_s;
        host += d - s.compute_s - s.comm_s;
      }
    }
    out.optimizer_s.push_back(optimizer);
    out.compute_s.push_back(compute);
    out.host_per_operator_s.push_back(host / static_cast<double>(count));
    out.gap_per_action_s.push_back((step.timeline.step_end_s - first_action - covered) /
                                   static_cast<double>(step.timeline.spans.size()));
  }
  return out;
}

/// Averages `value` over the first `active` ranks; the others contribute nothing.
void average(Communicator& world, int active, std::vector<double>& values) {
  if (world.rank() >= active) std::fill(values.begin(), values.end(), 0.0);
  const at::Tensor t =
      at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble);
  world.all_reduce(t);
  for (double& v : values) v /= active;
}

/// One model side by side on the active ranks: medians of each rank, averaged. Waiting ranks get
/// the figures too: they know the keys from a walk of the same lists, so the first rank tells how
/// many there are.
struct SharedTimings {
  std::vector<std::pair<OperatorKey, std::pair<double, double>>>
      operators;  ///< Key, flop, seconds.
  double parameters = 0, optimizer_s = 0, compute_s = 0, host_per_operator_s = 0,
         gap_per_action_s = 0;
};

SharedTimings run_side_by_side(Communicator& world, int active, const BenchModel& bench) {
  world.barrier();
  ModelTimings own;
  if (world.rank() < active) own = run_model(bench);
  world.barrier();
  constexpr size_t kFields = 7;
  constexpr size_t kScalars = 5;
  std::vector<double> size{static_cast<double>(own.operators.size())};
  average(world, active, size);
  std::vector<double> flat(kScalars + kFields * static_cast<size_t>(size[0]));
  if (world.rank() < active) {
    flat[0] = own.parameters;
    flat[1] = median(own.optimizer_s);
    flat[2] = median(own.compute_s);
    flat[3] = median(own.host_per_operator_s);
    flat[4] = median(own.gap_per_action_s);
    size_t i = kScalars;
    for (const auto& [key, t] : own.operators) {
      const auto& [kind, m, n, k, bytes] = key;
      for (const double x : {static_cast<double>(kind),
                             static_cast<double>(m),
                             static_cast<double>(n),
                             static_cast<double>(k),
                             bytes,
                             t.flop,
                             median(t.seconds)}) {
        flat[i++] = x;
      }
    }
  }
  average(world, active, flat);
  SharedTimings out{.operators = {},
                    .parameters = flat[0],
                    .optimizer_s = flat[1],
                    .compute_s = flat[2],
                    .host_per_operator_s = flat[3],
                    .gap_per_action_s = flat[4]};
  for (size_t i = kScalars; i < flat.size(); i += kFields) {
    const auto whole = [&](size_t field) { return static_cast<int64_t>(flat[i + field] + 0.5); };
    out.operators.push_back(
        {{static_cast<OpKind>(whole(0)), whole(1), whole(2), whole(3), flat[i + 4]},
         {flat[i + 5], flat[i + 6]}});
  }
  return out;
}

/// An addition stands for every operator that one rank alone never runs (residual sums and biases
/// under tp).
std::vector<Timing> time_additions(int active, Communicator& world) {
  constexpr int64_t kSizes[] = {16 * 1024, 128 * 1024, 1024 * 1024};
  constexpr int kAdditions = 30;
  std::vector<double> seconds;
  world.barrier();
  for (const int64_t n : kSizes) {
    std::vector<float> x(static_cast<size_t>(n), 1.0F);
    std::vector<float> y(static_cast<size_t>(n), 1.0F);
    std::vector<double> runs;
    for (int i = 0; i < kAdditions && world.rank() < active; ++i) {
      const auto start = std::chrono::steady_clock::now();
      kernels::add_inplace(y.data(), x.data(), n);
      runs.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    seconds.push_back(runs.empty() ? 0.0 : median(std::move(runs)));
  }
  average(world, active, seconds);
  std::vector<Timing> out;
  for (size_t i = 0; i < std::size(kSizes); ++i)
    out.push_back({2.0 * sizeof(float) * static_cast<double>(kSizes[i]), seconds[i]});
  return out;
}

class Collector {
 public:
  explicit Collector(Calibration& c) : c_(c) {}

  void add(const SharedTimings& t, const BenchModel& bench) {
    for (const auto& [key, figures] : t.operators) {
      const auto& [kind, m, n, k, bytes] = key;
      const auto& [flop, seconds] = figures;
      if (is_linear(kind)) {
        c_.matmul.push_back({kind, m, n, k, seconds});
      } else if (kind == OpKind::kAttention || kind == OpKind::kAttentionBackward) {
        auto& sample = attention_[{bench.seq_len, bench.head_dim}];
        (kind == OpKind::kAttention ? sample.first : sample.second).push_back(flop / seconds);
      } else {
        stream_[kind].push_back({bytes, seconds});
      }
    }
    adamw_.push_back(t.parameters / t.optimizer_s);
    host_per_operator_.push_back(t.host_per_operator_s);
    gap_per_action_.push_back(t.gap_per_action_s);
  }

  void add(OpKind kind, const std::vector<Timing>& timings) { stream_[kind] = timings; }

  void finish() {
    for (const auto& [geometry, rates] : attention_) {
      c_.attention.push_back(
          {geometry.first, geometry.second, median(rates.first), median(rates.second)});
    }
    for (const auto& [kind, timings] : stream_) {
      const Line line = fit_line(timings);
      c_.stream.push_back({kind, line.intercept_s, 1.0 / line.slope});
    }
    c_.adamw_params_per_s = median(adamw_);
    c_.host_per_operator_s = median(host_per_operator_);
    c_.host_per_action_s = std::max(0.0, median(gap_per_action_));
  }

 private:
  Calibration& c_;
  std::map<std::pair<int64_t, int64_t>, std::pair<std::vector<double>, std::vector<double>>>
      attention_;
  std::map<OpKind, std::vector<Timing>> stream_;
  std::vector<double> adamw_, host_per_operator_, gap_per_action_;
};

std::vector<BenchModel> bench_models(int world_size) {
  std::vector<BenchModel> out;
  for (const int64_t micro_batch : kBenchMicroBatches) {
    for (int64_t tp = 1; tp <= std::max(4, std::min(world_size, 8)); tp *= 2) {
      BenchModel b = sharded_model(micro_batch);
      b.num_heads /= tp;
      b.num_kv_heads = std::max<int64_t>(1, b.num_kv_heads / tp);
      b.d_ff /= tp;
      b.vocab_size /= tp;
      out.push_back(b);
    }
  }
  // Wider and narrower models, other sequence lengths and vocabularies.
  out.push_back({4, 64, 64, 4, 2, 16, 192, 512});
  out.push_back({8, 128, 128, 4, 2, 32, 384, 1024});
  out.push_back({1, 512, 512, 8, 4, 64, 1536, 4096});
  out.push_back({1, 1024, 384, 6, 2, 64, 1024, 2048});
  out.push_back({2, 512, 1024, 16, 4, 64, 2816, 4096});
  return out;
}

}  // namespace

BenchModel sharded_model(int64_t micro_batch) {
  return {.micro_batch = micro_batch,
          .seq_len = 256,
          .d_model = 256,
          .num_heads = 8,
          .num_kv_heads = 4,
          .head_dim = 32,
          .d_ff = 768,
          .vocab_size = 260};
}

Plan bench_plan(const BenchModel& b, int tp, bool sp) {
  auto p = std::make_shared<Problem>();
  p->model = {.name = "bench",
              .vocab_size = b.vocab_size,
              .d_model = b.d_model,
              .d_ff = b.d_ff,
              .num_layers = 2,
              .num_heads = b.num_heads,
              .num_kv_heads = b.num_kv_heads,
              .head_dim = b.head_dim,
              .max_seq_len = b.seq_len};
  p->cluster.name = std::to_string(tp) + "xlocal";
  p->cluster.num_devices = p->cluster.devices_per_node = tp;
  p->cluster.device.name = "local";
  p->cluster.device.kind = DeviceKind::kCpu;
  p->workload = {.name = "bench",
                 .seq_len = b.seq_len,
                 .global_batch = b.micro_batch * kMicroBatches,
                 .precision = Precision::kFp32};
  p->workload.optimizer.learning_rate = 1e-3;
  const auto outcome =
      validate(std::move(p),
               {.tp = tp, .sp = sp, .micro_batch = b.micro_batch, .precision = Precision::kFp32});
  MW_CHECK(outcome.plan.has_value());
  return *outcome.plan;
}

double median(std::vector<double> v) {
  MW_CHECK(!v.empty());
  std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void measure_operators(CommWorld& world, int cores, Calibration& calibration) {
  std::vector<int> all(static_cast<size_t>(world.world_size()));
  std::iota(all.begin(), all.end(), 0);
  const auto everyone = world.group(all);
  const int active = std::min(cores, world.world_size());
  const BenchModel crowded = sharded_model(4);
  Collector collector(calibration);
  double uncrowded_s = 0;
  for (const BenchModel& b : bench_models(world.world_size())) {
    const SharedTimings t = run_side_by_side(*everyone, active, b);
    collector.add(t, b);
    if (b.num_heads == crowded.num_heads && b.micro_batch == crowded.micro_batch &&
        b.d_model == crowded.d_model)
      uncrowded_s = t.compute_s;
  }
  collector.add(OpKind::kAdd, time_additions(active, *everyone));
  collector.finish();
  calibration.oversubscription = 1.0;
  if (world.world_size() > cores) {
    const double crowded_s = run_side_by_side(*everyone, world.world_size(), crowded).compute_s;
    const double fair = static_cast<double>(world.world_size()) / active;
    calibration.oversubscription = std::clamp(crowded_s / uncrowded_s / fair, 1.0, 2.0);
  }
}

}  // namespace meshwright
