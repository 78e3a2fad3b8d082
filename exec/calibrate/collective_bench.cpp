// SPDX-License-Identifier: Apache-2.0
#include "exec/calibrate/collective_bench.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "exec/calibrate/line_fit.h"
#include "exec/data/sample_source.h"
#include "exec/runtime/trainer.h"
#include "sim/graph/model_graph.h"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::minutes kTimeout{5};
/// The sharded model has eight heads.
constexpr int kMaxGroup = 8;

/// Operations and bytes of one kind in a step.
struct Count {
  double operations = 0;
  double bytes = 0;
};

struct StepCounts {
  Count all_reduce, all_gather, reduce_scatter;
};

StepCounts count_collectives(const Plan& plan) {
  StepCounts counts;
  const ModelGraph graph = build_model_graph(plan, 0);
  const auto add = [&](const std::vector<OperatorStep>& steps, double times) {
    for (const OperatorStep& s : steps) {
      if (!is_collective(s.op.kind)) continue;
      Count& c = s.op.kind == OpKind::kAllGather       ? counts.all_gather
                 : s.op.kind == OpKind::kReduceScatter ? counts.reduce_scatter
                                                       : counts.all_reduce;
      c.operations += times;
      c.bytes += times * s.op.bytes.v;
    }
  };
  const auto micro_batches = static_cast<double>(plan.num_micro_batches());
  for (const BlockGraph& b : graph.blocks) {
    const double blocks =
        b.kind == BlockKind::kDecoder ? static_cast<double>(plan.model().num_layers) : 1.0;
    add(b.forward, blocks * micro_batches);
    add(b.backward, blocks * micro_batches);
  }
  return counts;
}

/// CPU time of this thread: what it computed, without what it waited.
double thread_cpu_s() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  constexpr double kNano = 1e-9;
  return static_cast<double>(t.tv_sec) + kNano * static_cast<double>(t.tv_nsec);
}

/// What one run's collectives cost together, per step.
struct Excess {
  StepCounts counts;
  double seconds = 0;
};

/// Trains with tp over all ranks of `group`. A step takes as long as its ranks compute (on a share
/// of the cores each) plus what the collectives add; both are taken from the same steps, so that a
/// machine that speeds up or slows down between runs does not matter.
Excess tensor_parallel_excess(CommWorld& group, int64_t micro_batch, bool sp, int cores) {
  const BenchModel bench = sharded_model(micro_batch);
  const int n = group.world_size();
  const Plan plan = bench_plan(bench, n, sp);
  const auto samples = random_source(bench.vocab_size, bench.seq_len, 1);
  Trainer trainer(plan, group, *samples);
  std::vector<double> wall;
  std::vector<double> computing;
  for (int i = 0; i < kBenchWarmupSteps + kBenchSteps; ++i) {
    const double start = thread_cpu_s();
    const StepResult step = trainer.step(i);
    if (i < kBenchWarmupSteps) continue;
    computing.push_back((thread_cpu_s() - start) / n);
    wall.push_back(step.timeline.step_end_s - step.timeline.step_start_s);
  }
  trainer.max_over_ranks(wall);
  trainer.sum_over_ranks(computing);
  const double crowding = std::max(1.0, static_cast<double>(n) / cores);
  std::vector<double> excess;
  for (size_t i = 0; i < wall.size(); ++i) excess.push_back(wall[i] - crowding * computing[i]);
  return {count_collectives(plan), median(excess)};
}

/// Bandwidth and least start-up of a collective, in a loop of its own.
template <class Run>
Line time_in_a_loop(Communicator& group, Run run) {
  constexpr int64_t kNumel[] = {16 * 1024, 128 * 1024, 1024 * 1024};
  constexpr int kRuns = 9;
  std::vector<Timing> timings;
  for (const int64_t numel : kNumel) {
    const at::Tensor whole = at::zeros({numel}, at::kFloat);
    const at::Tensor shard = at::zeros({numel / group.size()}, at::kFloat);
    std::vector<double> seconds;
    for (int i = 0; i < kRuns; ++i) {
      const Clock::time_point start = Clock::now();
      run(whole, shard);
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    double slowest = median(seconds);
    group.all_reduce(at::from_blob(&slowest, {1}, at::kDouble), ReduceOp::kMax);
    timings.push_back({static_cast<double>(numel) * sizeof(float), slowest});
  }
  return fit_line(timings);
}

/// Beta is the loop's; alpha is what an operation costs in training beyond its bytes, and no less
/// than in the loop.
Line in_training(const std::vector<Excess>& runs, Count StepCounts::*kind, const Line& loop) {
  std::vector<double> alphas;
  for (const Excess& run : runs) {
    const Count& c = run.counts.*kind;
    alphas.push_back((run.seconds - c.bytes * loop.slope) / c.operations);
  }
  return {std::max(loop.intercept_s, median(alphas)), loop.slope};
}

void measure_group(CommWorld& world, Calibration& calibration) {
  const int n = world.world_size();
  std::vector<int> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  const auto group = world.group(all);
  const Line reduce_loop = time_in_a_loop(
      *group, [&](const at::Tensor& whole, const at::Tensor&) { group->all_reduce(whole); });
  const Line gather_loop = time_in_a_loop(
      *group,
      [&](const at::Tensor& whole, const at::Tensor& shard) { group->all_gather(whole, shard); });
  std::vector<Excess> plain;
  std::vector<Excess> sequence;
  for (const int64_t micro_batch : kBenchMicroBatches) {
    plain.push_back(tensor_parallel_excess(world, micro_batch, false, calibration.cores));
    sequence.push_back(tensor_parallel_excess(world, micro_batch, true, calibration.cores));
  }
  const Line all_reduce = in_training(plain, &StepCounts::all_reduce, reduce_loop);
  // exec/comm reduces and scatters by an all-reduce in place, so what is left of the
  // sequence-parallel excess is the all-gathers'.
  for (Excess& e : sequence) {
    for (const Count& c : {e.counts.all_reduce, e.counts.reduce_scatter}) {
      e.seconds -= c.operations * all_reduce.intercept_s + c.bytes * all_reduce.slope;
    }
  }
  const Line all_gather = in_training(sequence, &StepCounts::all_gather, gather_loop);
  calibration.collectives.push_back(
      {CommOp::kAllReduce, n, all_reduce.intercept_s, all_reduce.slope});
  calibration.collectives.push_back(
      {CommOp::kReduceScatter, n, all_reduce.intercept_s, all_reduce.slope});
  calibration.collectives.push_back(
      {CommOp::kAllGather, n, all_gather.intercept_s, all_gather.slope});
}

/// One message between two ranks: half of there and back.
Line time_messages(Communicator& pair) {
  constexpr int64_t kNumel[] = {1024, 16 * 1024, 64 * 1024, 256 * 1024, 1024 * 1024};
  constexpr int kTrips = 20;
  std::vector<Timing> timings;
  for (const int64_t numel : kNumel) {
    const at::Tensor message = at::zeros({numel}, at::kFloat);
    std::vector<double> seconds;
    for (int i = 0; i < kTrips; ++i) {
      const Clock::time_point start = Clock::now();
      if (pair.rank() == 0) {
        pair.send_async(message, 1, 0).wait();
        pair.recv(message, 1, 1);
      } else {
        pair.recv(message, 0, 0);
        pair.send_async(message, 0, 1).wait();
      }
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count() / 2);
    }
    timings.push_back({static_cast<double>(numel) * sizeof(float), median(seconds)});
  }
  return fit_line(timings);
}

/// All ranks take rank 0's fits.
void share(Communicator& everyone, std::vector<CollectiveFit>& fits, size_t count) {
  constexpr size_t kFields = 4;
  std::vector<double> flat(kFields * count);
  for (size_t i = 0; i < count && everyone.rank() == 0; ++i) {
    flat[kFields * i] = static_cast<double>(fits[i].op);
    flat[kFields * i + 1] = fits[i].group_size;
    flat[kFields * i + 2] = fits[i].alpha_s;
    flat[kFields * i + 3] = fits[i].beta_s_per_byte;
  }
  everyone.all_reduce(at::from_blob(flat.data(), {static_cast<int64_t>(flat.size())}, at::kDouble));
  fits.clear();
  for (size_t i = 0; i < count; ++i) {
    fits.push_back({static_cast<CommOp>(static_cast<int>(flat[kFields * i])),
                    static_cast<int>(flat[kFields * i + 1]),
                    flat[kFields * i + 2],
                    flat[kFields * i + 3]});
  }
}

}  // namespace

void measure_collectives(CommWorld& world, const std::string& store_url, Calibration& calibration) {
  if (world.world_size() < 2) return;
  std::vector<int> all(static_cast<size_t>(world.world_size()));
  std::iota(all.begin(), all.end(), 0);
  const auto everyone = world.group(all);
  size_t count = 0;
  for (int n = 2; n <= std::min(world.world_size(), kMaxGroup); n *= 2) {
    everyone->barrier();
    if (world.rank() < n) {
      const auto group =
          CommWorld::connect(store_url + "-tp" + std::to_string(n), world.rank(), n, kTimeout);
      measure_group(*group, calibration);
    }
    constexpr size_t kFitsPerGroup = 3;
    count += kFitsPerGroup;
  }
  everyone->barrier();
  if (const auto pair = world.group({0, 1})) {
    const Line message = time_messages(*pair);
    calibration.collectives.push_back({CommOp::kSendRecv, 2, message.intercept_s, message.slope});
  }
  ++count;
  share(*everyone, calibration.collectives, count);
}

}  // namespace meshwright
