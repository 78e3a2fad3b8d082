// SPDX-License-Identifier: Apache-2.0
#include "exec/telemetry/run_recorder.h"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

TEST(MedianStep, LeavesTheWarmUpOut) {
  EXPECT_EQ(median_step({9}), 0);
  EXPECT_EQ(median_step({9, 1, 5}), 2);
  EXPECT_EQ(median_step({0, 0, 0, 7}), 3);
  EXPECT_EQ(median_step({0, 0, 0, 7, 1, 3}), 5);
  EXPECT_EQ(median_step({0, 0, 0, 7, 1}), 4);  // the lower of two
}

TEST(RunRecorder, ReportsTheMedianStepAndWhatIsLeftAsActivations) {
  RunRecorder recorder(2, "hash");
  for (int i = 0; i < 5; ++i) {
    StepResult step;
    step.loss = 10 - i;
    step.timeline.rank = 2;
    step.timeline.step_start_s = 100 * i;
    step.timeline.step_end_s = 100 * i + 5 + i;
    recorder.add(step);
  }
  const RankReport r = recorder.report(
      {1, 1, 1, 8, 9}, {.weights = 10, .gradients = 20, .optimizer = 30, .other = 5}, 100);
  EXPECT_EQ(r.rank, 2);
  EXPECT_EQ(r.median_step, 3);
  EXPECT_DOUBLE_EQ(r.timeline.step_start_s, 300);
  EXPECT_EQ(r.step_time_s, (std::vector<double>{5, 6, 7, 8, 9}));
  EXPECT_EQ(r.loss.back(), 6);
  EXPECT_DOUBLE_EQ(r.memory[static_cast<size_t>(MemoryTerm::kActivations)].v, 35);
  EXPECT_DOUBLE_EQ(r.peak_memory.v, 100);
}

}  // namespace
}  // namespace meshwright
