// SPDX-License-Identifier: Apache-2.0
#include "exec/calibrate/collective_bench.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

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

/// Median over steps of the slowest rank's step time, training with tp over `group`'s ranks (the
/// first ones).
double tensor_parallel_step(CommWorld& group, int64_t micro_batch, bool sp) {
  const BenchModel bench = sharded_model(micro_batch);
  const Plan plan = bench_plan(bench, group.world_size(), sp);
  const auto samples = random_source(bench.vocab_size, bench.seq_len, 1);
  Trainer trainer(plan, group, *samples);
  std::vector<double> seconds;
  for (int i = 0; i < kBenchWarmupSteps + kBenchSteps; ++i) {
    const StepResult step = trainer.step(i);
    if (i >= kBenchWarmupSteps)
      seconds.push_back(step.timeline.step_end_s - step.timeline.step_start_s);
  }
  trainer.max_over_ranks(seconds);
  return median(seconds);
}

/// What one run's collectives cost together.
struct Excess {
  StepCounts counts;
  double seconds = 0;
};

/// alpha * operations + beta * bytes = seconds over the runs, as a line through the means per
/// operation.
Line fit_excess(const std::vector<Excess>& runs, Count StepCounts::*kind) {
  std::vector<Timing> timings;
  for (const Excess& run : runs) {
    const Count& c = run.counts.*kind;
    constexpr double kLeast =
        1e-6;  // noise can make an excess vanish; a collective never takes less
    timings.push_back({c.bytes / c.operations, std::max(kLeast, run.seconds / c.operations)});
  }
  return fit_line(timings);
}

void measure_group(CommWorld& group, const AloneStepTimes& alone, Calibration& calibration) {
  const int n = group.world_size();
  const double crowding = std::max(1.0, static_cast<double>(n) / calibration.cores);
  const double sharing = crowding > 1 ? crowding * calibration.oversubscription : 1.0;
  std::vector<Excess> plain;
  std::vector<Excess> sequence;
  for (const int64_t micro_batch : kBenchMicroBatches) {
    const double computing = sharing * alone.at({n, micro_batch});
    for (const bool sp : {false, true}) {
      const Plan plan = bench_plan(sharded_model(micro_batch), n, sp);
      (sp ? sequence : plain)
          .push_back(
              {count_collectives(plan), tensor_parallel_step(group, micro_batch, sp) - computing});
    }
  }
  const Line all_reduce = fit_excess(plain, &StepCounts::all_reduce);
  // exec/comm reduces and scatters by an all-reduce in place, so what is left of the
  // sequence-parallel excess is the all-gathers'.
  for (Excess& e : sequence) {
    for (const Count& c : {e.counts.all_reduce, e.counts.reduce_scatter}) {
      e.seconds -= c.operations * all_reduce.intercept_s + c.bytes * all_reduce.slope;
    }
  }
  const Line all_gather = fit_excess(sequence, &StepCounts::all_gather);
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

void measure_collectives(CommWorld& world,
                         const std::string& store_url,
                         const AloneStepTimes& alone,
                         Calibration& calibration) {
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
      measure_group(*group, alone, calibration);
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
