// SPDX-License-Identifier: Apache-2.0
#include "exec/data/batch_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/exec/tiny_plan.h"

namespace meshwright {
namespace {

/// Ids and labels name the sample; every third sample has labels that do not count.
class NumberedSource final : public SampleSource {
 public:
  explicit NumberedSource(int64_t seq_len) : seq_len_(seq_len) {}
  [[nodiscard]] int64_t num_samples() const override { return 11; }
  [[nodiscard]] bool every_token_counts() const override { return false; }
  void read(int64_t sample, int64_t* ids, int64_t* labels) const override {
    std::fill_n(ids, seq_len_, sample);
    std::fill_n(labels, seq_len_, sample % 3 == 0 ? kIgnoreLabel : sample);
  }

 private:
  int64_t seq_len_;
};

/// Samples of one step in a layout, from all ranks, sorted; and the counts of valid tokens.
std::vector<int64_t> samples_of(int64_t step, int dp, int64_t micro_batch, int64_t* own_sum) {
  TinyPlan tiny;
  tiny.layout.dp_replicate = dp;
  tiny.layout.micro_batch = micro_batch;
  const Plan plan = make_plan(tiny);
  const NumberedSource source(plan.workload().seq_len);
  std::vector<int64_t> samples;
  *own_sum = 0;
  for (int d = 0; d < dp; ++d) {
    BatchReader reader(source, plan, d);
    std::vector<int64_t> ids(static_cast<size_t>(plan.tokens_per_micro_batch()));
    for (int mb = 0; mb < plan.num_micro_batches(); ++mb) {
      reader.read(step, mb, ids.data(), nullptr);
      for (int64_t i = 0; i < micro_batch; ++i)
        samples.push_back(ids[static_cast<size_t>(i * plan.workload().seq_len)]);
    }
    const BatchReader::TokenCounts counts = reader.count_tokens(step);
    *own_sum += counts.own;
    if (d + 1 == dp) {
      EXPECT_EQ(*own_sum, counts.global);
    }
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

TEST(BatchReader, StepIsTheSameSetOfSamplesInEveryLayout) {
  for (const int64_t step : {0, 1, 5}) {
    int64_t whole = 0;
    const auto reference = samples_of(step, 1, 1, &whole);
    EXPECT_EQ(reference.size(), 8u);
    for (const auto& [dp, micro_batch] : {std::pair{1, 4}, {2, 1}, {2, 2}, {4, 2}}) {
      int64_t sum = 0;
      EXPECT_EQ(samples_of(step, dp, micro_batch, &sum), reference)
          << step << " " << dp << " " << micro_batch;
      EXPECT_EQ(sum, whole);
    }
  }
}

TEST(BatchReader, EpochVisitsEverySampleOnceAndEpochsDiffer) {
  TinyPlan tiny;
  tiny.global_batch = 11;
  const Plan plan = make_plan(tiny);
  const NumberedSource source(plan.workload().seq_len);
  BatchReader reader(source, plan, 0);
  std::vector<int64_t> ids(static_cast<size_t>(plan.workload().seq_len));
  std::vector<std::vector<int64_t>> epochs(2);
  for (int64_t step = 0; step < 2; ++step) {
    for (int mb = 0; mb < 11; ++mb) {
      reader.read(step, mb, ids.data(), nullptr);
      epochs[static_cast<size_t>(step)].push_back(ids[0]);
    }
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    for (int64_t i = 0; i < 11; ++i) EXPECT_EQ(epoch[static_cast<size_t>(i)], i);
  }
}

TEST(RandomSource, IsAPureFunctionAndLabelsFollowIds) {
  const auto source = random_source(50, 8, 1);
  const auto again = random_source(50, 8, 1);
  std::vector<int64_t> ids(8), labels(8), ids2(8), labels2(8);
  source->read(3, ids.data(), labels.data());
  again->read(3, ids2.data(), labels2.data());
  EXPECT_EQ(ids, ids2);
  EXPECT_TRUE(std::equal(ids.begin() + 1, ids.end(), labels.begin()));
  EXPECT_TRUE(std::all_of(ids.begin(), ids.end(), [](int64_t t) { return t >= 0 && t < 50; }));
  again->read(4, ids2.data(), labels2.data());
  EXPECT_NE(ids, ids2);
}

}  // namespace
}  // namespace meshwright
