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

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;

/// Full-tensor sizes in floats: 256 B to 8 MiB.
constexpr int64_t kNumel[] = {64, 1024, 16 * 1024, 64 * 1024, 256 * 1024, 2 * 1024 * 1024};
constexpr int64_t kManyBelow = 64 * 1024;
constexpr int kManyRuns = 40;
constexpr int kFewRuns = 12;

void run_once(CommOp op, Communicator& group, const at::Tensor& whole, const at::Tensor& shard) {
  switch (op) {
    case CommOp::kAllReduce:
      group.all_reduce(whole);
      break;
    case CommOp::kAllGather:
      group.all_gather(whole, shard);
      break;
    case CommOp::kReduceScatter:
      group.reduce_scatter(shard, whole);
      break;
    case CommOp::kSendRecv:
      // There and back: two messages.
      if (group.rank() == 0) {
        group.send_async(whole, 1, 0).wait();
        group.recv(whole, 1, 1);
      } else {
        group.recv(whole, 0, 0);
        group.send_async(whole, 0, 1).wait();
      }
      break;
  }
}

/// Seconds of one operation: each rank's median, then the slowest rank of the group.
double time_of(CommOp op, Communicator& group, int64_t numel) {
  const int64_t n = group.size();
  const at::Tensor whole = at::zeros({numel}, at::kFloat);
  const at::Tensor shard = at::zeros({numel / n}, at::kFloat);
  run_once(op, group, whole, shard);
  const int runs = numel < kManyBelow ? kManyRuns : kFewRuns;
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    const Clock::time_point start = Clock::now();
    run_once(op, group, whole, shard);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + runs / 2, seconds.end());
  double median = seconds[static_cast<size_t>(runs / 2)] / (op == CommOp::kSendRecv ? 2 : 1);
  group.all_reduce(at::from_blob(&median, {1}, at::kDouble), ReduceOp::kMax);
  return median;
}

}  // namespace

void measure_collectives(CommWorld& world, Calibration& calibration) {
  std::vector<int> all(static_cast<size_t>(world.world_size()));
  std::iota(all.begin(), all.end(), 0);
  const auto everyone = world.group(all);
  for (int size = 2; size <= world.world_size(); size *= 2) {
    const auto group = world.group(std::vector<int>(all.begin(), all.begin() + size));
    for (const CommOp op : {CommOp::kAllReduce, CommOp::kAllGather, CommOp::kReduceScatter, CommOp::kSendRecv}) {
      if (op == CommOp::kSendRecv && size > 2) continue;
      std::vector<double> seconds(std::size(kNumel), 0.0);
      for (size_t i = 0; group && i < std::size(kNumel); ++i) seconds[i] = time_of(op, *group, kNumel[i]);
      everyone->all_reduce(at::from_blob(seconds.data(), {static_cast<int64_t>(seconds.size())}, at::kDouble), ReduceOp::kMax);
      std::vector<Timing> timings;
      for (size_t i = 0; i < std::size(kNumel); ++i) {
        timings.push_back({static_cast<double>(kNumel[i]) * sizeof(float), seconds[i]});
      }
      const Line line = fit_line(timings);
      calibration.collectives.push_back({op, size, line.intercept_s, line.slope});
    }
  }
}

}  // namespace meshwright
