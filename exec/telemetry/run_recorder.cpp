// SPDX-License-Identifier: Apache-2.0
#include "exec/telemetry/run_recorder.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace meshwright {

int median_step(const std::vector<double>& step_time_s) {
  MW_CHECK(!step_time_s.empty());
  const int n = static_cast<int>(step_time_s.size());
  const int first = n > kWarmupSteps ? kWarmupSteps : 0;
  std::vector<int> order(static_cast<size_t>(n - first));
  std::iota(order.begin(), order.end(), first);
  const auto middle = order.begin() + (n - first - 1) / 2;
  std::nth_element(order.begin(), middle, order.end(), [&](int a, int b) {
    return step_time_s[static_cast<size_t>(a)] < step_time_s[static_cast<size_t>(b)];
  });
  return *middle;
}

void RunRecorder::add(StepResult step) { steps_.push_back(std::move(step)); }

std::vector<double> RunRecorder::step_times() const {
  std::vector<double> times;
  for (const StepResult& s : steps_)
    times.push_back(s.timeline.step_end_s - s.timeline.step_start_s);
  return times;
}

RankReport RunRecorder::report(const std::vector<double>& slowest_s,
                               const ResidentBytes& resident,
                               int64_t peak_bytes) const {
  RankReport r;
  r.rank = rank_;
  r.plan_hash = plan_hash_;
  for (const StepResult& s : steps_) r.loss.push_back(s.loss);
  r.step_time_s = step_times();
  r.median_step = median_step(slowest_s);
  r.peak_memory = Bytes{static_cast<double>(peak_bytes)};
  const auto set = [&r](MemoryTerm t, int64_t bytes) {
    r.memory[static_cast<size_t>(t)] = Bytes{static_cast<double>(bytes)};
  };
  set(MemoryTerm::kWeights, resident.weights);
  set(MemoryTerm::kGradients, resident.gradients);
  set(MemoryTerm::kOptimizer, resident.optimizer);
  set(MemoryTerm::kOther, resident.other);
  set(MemoryTerm::kActivations,
      peak_bytes - resident.weights - resident.gradients - resident.optimizer - resident.other);
  r.timeline = steps_[static_cast<size_t>(r.median_step)].timeline;
  return r;
}

}  // namespace meshwright
