// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kIgnore = -100;
constexpr float kGradScale = 0.125F;

struct Outcome {
  double loss = 0.0;
  std::vector<float> gradient;  // [rows, vocab]
};

/// Runs the three passes over shards [bounds[s], bounds[s + 1]) and plays the all-reduces between
/// them.
Outcome run_sharded(const std::vector<float>& logits,
                    const std::vector<std::int64_t>& labels,
                    const std::vector<std::int64_t>& bounds) {
  const auto rows = static_cast<std::int64_t>(labels.size());
  const std::int64_t vocab = bounds.back();
  const std::size_t num_shards = bounds.size() - 1;
  std::vector<std::vector<float>> shards(num_shards);
  std::vector<float> row_max(labels.size(), -std::numeric_limits<float>::infinity());
  std::vector<float> sum_exp(labels.size(), 0.0F);
  std::vector<float> target(labels.size(), 0.0F);
  std::vector<float> part(labels.size());
  std::vector<float> part_target(labels.size());
  const auto cols = [&](std::size_t s) { return bounds[s + 1] - bounds[s]; };

  for (std::size_t s = 0; s < num_shards; ++s) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto begin = logits.begin() + row * vocab;
      shards[s].insert(shards[s].end(), begin + bounds[s], begin + bounds[s + 1]);
    }
    logits_row_max(shards[s].data(), part.data(), rows, cols(s));
    for (std::size_t row = 0; row < labels.size(); ++row) {
      row_max[row] = std::max(row_max[row], part[row]);
    }
  }
  for (std::size_t s = 0; s < num_shards; ++s) {
    logits_exp_sum(shards[s].data(),
                   row_max.data(),
                   labels.data(),
                   bounds[s],
                   part.data(),
                   part_target.data(),
                   rows,
                   cols(s));
    for (std::size_t row = 0; row < labels.size(); ++row) {
      sum_exp[row] += part[row];
      target[row] += part_target[row];
    }
  }
  Outcome outcome;
  outcome.gradient.resize(logits.size());
  for (std::size_t s = 0; s < num_shards; ++s) {
    const double loss = cross_entropy_finish(shards[s].data(),
                                             sum_exp.data(),
                                             target.data(),
                                             labels.data(),
                                             bounds[s],
                                             kIgnore,
                                             kGradScale,
                                             rows,
                                             cols(s));
    if (s > 0) {
      EXPECT_EQ(loss, outcome.loss) << "shard " << s;
    }
    outcome.loss = loss;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(shards[s].begin() + row * cols(s),
                  cols(s),
                  outcome.gradient.begin() + row * vocab + bounds[s]);
    }
  }
  return outcome;
}

double reference_loss(const std::vector<double>& logits, const std::vector<std::int64_t>& labels) {
  const std::size_t vocab = logits.size() / labels.size();
  double loss = 0.0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] == kIgnore) continue;
    double sum = 0.0;
    for (std::size_t j = 0; j < vocab; ++j) sum += std::exp(logits[row * vocab + j]);
    loss += std::log(sum) - logits[row * vocab + at(labels[row])];
  }
  return loss;
}

std::vector<std::int64_t> even_bounds(std::int64_t vocab, std::int64_t num_shards) {
  const std::int64_t size = (vocab + num_shards - 1) / num_shards;
  std::vector<std::int64_t> bounds = {0};
  for (std::int64_t s = 1; s <= num_shards; ++s) bounds.push_back(std::min(s * size, vocab));
  return bounds;
}

/// The first, the last, an ignored and then spread labels.
std::vector<std::int64_t> make_labels(std::int64_t rows, std::int64_t vocab) {
  std::vector<std::int64_t> labels;
  for (std::int64_t row = 0; row < rows; ++row) labels.push_back(row * 5 % vocab);
  labels[0] = 0;
  labels[1] = vocab - 1;
  labels[2] = kIgnore;
  return labels;
}

class CrossEntropy : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Vocabularies, CrossEntropy, ::testing::Values(1, 3, 7, 17, 129, 5000));

TEST_P(CrossEntropy, LossAndGradientMatchDouble) {
  const std::int64_t vocab = GetParam();
  const auto labels = make_labels(6, vocab);
  const auto logits = random_floats(6 * vocab, 1, 6.0F);
  const Outcome outcome = run_sharded(logits, labels, {0, vocab});
  EXPECT_NEAR(outcome.loss, reference_loss(to_double(logits), labels), 1e-5);
  std::vector<double> expected;
  if (vocab <= 200) {
    expected = central_difference(
        [&](const std::vector<double>& l) {
          return static_cast<double>(kGradScale) * reference_loss(l, labels);
        },
        to_double(logits));
    expect_close(outcome.gradient, expected, 1e-7);
  }
}

TEST_P(CrossEntropy, AnyNumberOfShardsEqualsTheWhole) {
  const std::int64_t vocab = GetParam();
  const auto labels = make_labels(6, vocab);
  const auto logits = random_floats(6 * vocab, 2, 6.0F);
  const Outcome whole = run_sharded(logits, labels, {0, vocab});
  for (const std::int64_t num_shards : {2, 3, 4}) {
    // Vocabulary 1 leaves all shards but the first empty, and 7 over 4 leaves a short one.
    const Outcome sharded = run_sharded(logits, labels, even_bounds(vocab, num_shards));
    EXPECT_NEAR(sharded.loss, whole.loss, 2e-6) << num_shards << " shards";
    expect_close(sharded.gradient, to_double(whole.gradient), 2e-7, kGradScale);
  }
}

TEST(CrossEntropyShards, EmptyShardsAnywhere) {
  const auto labels = make_labels(5, 7);
  const auto logits = random_floats(5 * 7, 3);
  const Outcome whole = run_sharded(logits, labels, {0, 7});
  const Outcome sharded = run_sharded(logits, labels, {0, 0, 6, 6, 7});
  EXPECT_NEAR(sharded.loss, whole.loss, 2e-6);
  expect_close(sharded.gradient, to_double(whole.gradient), 2e-7, kGradScale);
}

TEST(CrossEntropyIgnore, AllIgnoredGivesZeroEvenForNan) {
  std::vector<float> logits = random_floats(2 * 17, 4);
  logits[3] = std::numeric_limits<float>::quiet_NaN();
  const Outcome outcome = run_sharded(logits, {kIgnore, kIgnore}, {0, 9, 17});
  EXPECT_EQ(outcome.loss, 0.0);
  EXPECT_EQ(outcome.gradient, std::vector<float>(2 * 17, 0.0F));
}

TEST(CrossEntropyIgnore, AnIgnoredRowLeavesTheOthersAlone) {
  const auto logits = random_floats(2 * 7, 5);
  const Outcome both = run_sharded(logits, {4, kIgnore}, {0, 7});
  const Outcome first = run_sharded({logits.begin(), logits.begin() + 7}, {4}, {0, 7});
  EXPECT_EQ(both.loss, first.loss);
  EXPECT_TRUE(std::equal(first.gradient.begin(), first.gradient.end(), both.gradient.begin()));
}

TEST(CrossEntropyKnownAnswer, UniformLogitsGiveLogV) {
  const Outcome outcome = run_sharded(std::vector<float>(8, 3.0F), {5}, {0, 8});
  EXPECT_NEAR(outcome.loss, 2.0794415416798357, 1e-7);  // ln 8
  for (std::size_t j = 0; j < 8; ++j) {
    EXPECT_FLOAT_EQ(outcome.gradient[j], kGradScale * (j == 5 ? -0.875F : 0.125F));
  }
}

TEST(CrossEntropyEdge, HugeLogitsStayFinite) {
  const Outcome outcome = run_sharded({3e38F, -3e38F, 0.0F}, {0}, {0, 2, 3});
  EXPECT_EQ(outcome.loss, 0.0);
  EXPECT_EQ(outcome.gradient, std::vector<float>(3, 0.0F));
}

TEST(CrossEntropyEdge, NanReachesTheLoss) {
  const Outcome outcome =
      run_sharded({1.0F, std::numeric_limits<float>::quiet_NaN(), 0.0F}, {0}, {0, 3});
  EXPECT_TRUE(std::isnan(outcome.loss));
}

TEST(LogitsRowMax, EmptyShardIsMinusInfinity) {
  std::vector<float> row_max(2, 5.0F);
  logits_row_max(nullptr, row_max.data(), 2, 0);
  EXPECT_EQ(row_max, std::vector<float>(2, -std::numeric_limits<float>::infinity()));
}

}  // namespace
}  // namespace meshwright::kernels
