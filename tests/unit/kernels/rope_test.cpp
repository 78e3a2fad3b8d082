// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope.h"

#include <gtest/gtest.h>

#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

struct Shape {
  std::int64_t tokens, seq_len, num_q_heads, num_kv_heads, head_dim;
  [[nodiscard]] std::int64_t row_size() const {
    return (num_q_heads + 2 * num_kv_heads) * head_dim;
  }
};

constexpr double kTheta = 10000.0;

/// x cos + rotate_half(x) sin as Hugging Face writes it: rotate_half(x) = concat(-x[half:],
/// x[:half]).
std::vector<double> reference(const std::vector<double>& qkv, const Shape& s) {
  std::vector<double> y = qkv;
  const std::int64_t half = s.head_dim / 2;
  for (std::int64_t token = 0; token < s.tokens; ++token) {
    const auto position = static_cast<double>(token % s.seq_len);
    for (std::int64_t head = 0; head < s.num_q_heads + s.num_kv_heads; ++head) {
      const std::int64_t begin = token * s.row_size() + head * s.head_dim;
      for (std::int64_t i = 0; i < s.head_dim; ++i) {
        const double power = -2.0 * static_cast<double>(i % half) / static_cast<double>(s.head_dim);
        const double angle = position * std::pow(kTheta, power);
        const double rotated = i < half ? -qkv[at(begin + i + half)] : qkv[at(begin + i - half)];
        y[at(begin + i)] = qkv[at(begin + i)] * std::cos(angle) + rotated * std::sin(angle);
      }
    }
  }
  return y;
}

/// theta^(-2 i / head_dim).
std::vector<double> frequencies(std::int64_t head_dim) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < head_dim / 2; ++i)
    out.push_back(std::pow(kTheta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim)));
  return out;
}

class Rope : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    const Shape& s = GetParam();
    cos_.resize(at(s.seq_len * s.head_dim / 2));
    sin_.resize(cos_.size());
    rope_tables(
        cos_.data(), sin_.data(), s.seq_len, s.head_dim / 2, frequencies(s.head_dim).data());
  }
  std::vector<float> cos_, sin_;
};
INSTANTIATE_TEST_SUITE_P(Shapes,
                         Rope,
                         ::testing::Values(Shape{1, 1, 1, 1, 2},
                                           Shape{6, 3, 2, 1, 6},
                                           Shape{4, 2, 2, 1, 34},
                                           Shape{3, 3, 1, 1, 64}));

TEST_P(Rope, ForwardMatchesRotateHalf) {
  const Shape& s = GetParam();
  const auto before = random_floats(s.tokens * s.row_size(), 1);
  auto qkv = before;
  rope_forward(qkv.data(),
               cos_.data(),
               sin_.data(),
               s.tokens,
               s.seq_len,
               s.num_q_heads + s.num_kv_heads,
               s.head_dim,
               s.row_size());
  expect_close(qkv, reference(to_double(before), s), 3e-7);
}

TEST_P(Rope, BackwardMatchesCentralDifferences) {
  const Shape& s = GetParam();
  const std::int64_t q_size = s.num_q_heads * s.head_dim;
  const std::int64_t kv_size = s.num_kv_heads * s.head_dim;
  const auto dq = random_floats(s.tokens * q_size, 2);
  const auto dk = random_floats(s.tokens * kv_size, 3);
  const auto dv = random_floats(s.tokens * kv_size, 4);
  std::vector<float> dqkv(at(s.tokens * s.row_size()), 99.0F);
  rope_backward_pack(dq.data(),
                     dk.data(),
                     dv.data(),
                     dqkv.data(),
                     cos_.data(),
                     sin_.data(),
                     s.tokens,
                     s.seq_len,
                     s.num_q_heads,
                     s.num_kv_heads,
                     s.head_dim);

  std::vector<double> packed;
  for (std::int64_t token = 0; token < s.tokens; ++token) {
    packed.insert(packed.end(), dq.begin() + token * q_size, dq.begin() + (token + 1) * q_size);
    packed.insert(packed.end(), dk.begin() + token * kv_size, dk.begin() + (token + 1) * kv_size);
    packed.insert(packed.end(), dv.begin() + token * kv_size, dv.begin() + (token + 1) * kv_size);
  }
  const auto expected =
      central_difference([&](const std::vector<double>& x) { return dot(reference(x, s), packed); },
                         to_double(random_floats(s.tokens * s.row_size(), 5)));
  expect_close(dqkv, expected, 1e-6);
}

TEST(RopeTables, KnownAngles) {
  // head_dim 4, theta 10000: the frequencies are 1 and 1/100.
  std::vector<float> cos(6);
  std::vector<float> sin(6);
  rope_tables(cos.data(), sin.data(), 3, 2, frequencies(4).data());
  EXPECT_EQ(cos[0], 1.0F);
  EXPECT_EQ(sin[1], 0.0F);
  EXPECT_FLOAT_EQ(cos[2], 0.54030231F);  // cos 1
  EXPECT_FLOAT_EQ(sin[3], 0.00999983F);  // sin 0.01
  EXPECT_FLOAT_EQ(sin[4], 0.90929743F);  // sin 2
}

}  // namespace
}  // namespace meshwright::kernels
