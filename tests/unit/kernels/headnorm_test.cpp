// SPDX-License-Identifier: Apache-2.0
#include "kernels/headnorm/headnorm.h"

#include <gtest/gtest.h>

#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kTokens = 4;
constexpr HeadCounts kHeads{.queries = 3, .keys = 2, .dim = 6};
constexpr std::int64_t kNormed = kHeads.queries + kHeads.keys;
constexpr std::int64_t kRow = (kNormed + kHeads.keys) * kHeads.dim;
constexpr double kEps = 1e-5;

/// [tokens, q | k], each head normed.
std::vector<double> reference(const std::vector<double>& qkv,
                              const std::vector<double>& q_weight,
                              const std::vector<double>& k_weight) {
  std::vector<double> out;
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t h = 0; h < kNormed; ++h) {
      const std::int64_t begin = token * kRow + h * kHeads.dim;
      const auto& w = h < kHeads.queries ? q_weight : k_weight;
      double sum = 0;
      for (std::int64_t j = 0; j < kHeads.dim; ++j) sum += qkv[at(begin + j)] * qkv[at(begin + j)];
      const double r = 1 / std::sqrt(sum / static_cast<double>(kHeads.dim) + kEps);
      for (std::int64_t j = 0; j < kHeads.dim; ++j)
        out.push_back(qkv[at(begin + j)] * r * w[at(j)]);
    }
  }
  return out;
}

/// Columns [begin, begin + count) of rows of `width`.
std::vector<float> columns(const std::vector<float>& x,
                           std::int64_t width,
                           std::int64_t begin,
                           std::int64_t count) {
  std::vector<float> out;
  for (std::int64_t row = 0; row < kTokens; ++row) {
    for (std::int64_t j = 0; j < count; ++j) out.push_back(x[at(row * width + begin + j)]);
  }
  return out;
}

TEST(HeadNorm, MatchesDoubleAndCentralDifferencesAndPacksTheValues) {
  auto qkv = random_floats(kTokens * kRow, 1, 2.0F);
  const auto q_weight = random_floats(kHeads.dim, 2);
  const auto k_weight = random_floats(kHeads.dim, 3);
  std::vector<float> qk(at(kTokens * kNormed * kHeads.dim)), rstd(at(kTokens * kNormed));
  headnorm_forward(qkv.data(),
                   q_weight.data(),
                   k_weight.data(),
                   qk.data(),
                   rstd.data(),
                   kTokens,
                   kHeads,
                   static_cast<float>(kEps));
  expect_close(qk, reference(to_double(qkv), to_double(q_weight), to_double(k_weight)), 1e-6);

  const std::int64_t q_size = kHeads.queries * kHeads.dim, kv_size = kHeads.keys * kHeads.dim;
  const auto dqk = random_floats(kTokens * kNormed * kHeads.dim, 4);
  const auto dv = random_floats(kTokens * kv_size, 5);
  const auto dq = columns(dqk, q_size + kv_size, 0, q_size);
  const auto dk = columns(dqk, q_size + kv_size, q_size, kv_size);
  const auto gradient = [&](auto&& forward, const std::vector<float>& of) {
    return central_difference(
        [&](const std::vector<double>& v) { return dot(forward(v), to_double(dqk)); },
        to_double(of));
  };
  auto expected = gradient(
      [&](const std::vector<double>& v) {
        return reference(v, to_double(q_weight), to_double(k_weight));
      },
      qkv);
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t j = 0; j < kv_size; ++j)
      expected[at(token * kRow + q_size + kv_size + j)] = dv[at(token * kv_size + j)];
  }
  auto expected_q = gradient(
      [&](const std::vector<double>& v) {
        return reference(to_double(qkv), v, to_double(k_weight));
      },
      q_weight);
  auto expected_k = gradient(
      [&](const std::vector<double>& v) {
        return reference(to_double(qkv), to_double(q_weight), v);
      },
      k_weight);
  constexpr float kBefore = 0.25F;
  for (double& v : expected_q) v += static_cast<double>(kBefore);
  for (double& v : expected_k) v += static_cast<double>(kBefore);
  std::vector<float> dq_weight(q_weight.size(), kBefore), dk_weight(k_weight.size(), kBefore);
  headnorm_backward(dq.data(),
                    dk.data(),
                    dv.data(),
                    rstd.data(),
                    q_weight.data(),
                    k_weight.data(),
                    qkv.data(),
                    dq_weight.data(),
                    dk_weight.data(),
                    kTokens,
                    kHeads);
  expect_close(qkv, expected, 3e-6);
  expect_close(dq_weight, expected_q, 3e-6);
  expect_close(dk_weight, expected_k, 3e-6);
}

}  // namespace
}  // namespace meshwright::kernels
