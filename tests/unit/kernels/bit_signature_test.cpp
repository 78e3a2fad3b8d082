// SPDX-License-Identifier: Apache-2.0
// One hash per operator over the bits that it writes for a fixed input. A build without the ISA
// clones (the asan preset, clang) and one with them must reach the same hashes: that is the claim
// "same bits on every ISA". A refactor must not change them either; a change of arithmetic must,
// and then says so in its commit.
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "kernels/activation/activation.h"
#include "kernels/adamw/adamw.h"
#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/headnorm/headnorm.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/random/fill_normal.h"
#include "kernels/random/permuted_index.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rope/rope.h"
#include "kernels/swiglu/swiglu.h"
#include "tests/unit/kernels/tensors.h"

namespace meshwright::kernels {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kRows = 9;
constexpr std::int64_t kCols = 1234;

/// FNV-1a over the words of several tensors.
std::uint64_t signature(std::initializer_list<std::vector<float>> tensors) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const auto& tensor : tensors) {
    for (const float v : tensor) hash = (hash ^ std::bit_cast<std::uint32_t>(v)) * 0x100000001B3U;
  }
  return hash;
}

TEST(BitSignature, FillNormal) {
  std::vector<float> x(at(kRows * kCols));
  fill_normal(x.data(), kRows, kCols, kCols, 3, 0, 42, 7, 0.02F);
  EXPECT_EQ(signature({x}), 0xF92426D3927D03B6U);
}

TEST(BitSignature, RmsNorm) {
  const auto x = random_floats(kRows * kCols, 1);
  const auto weight = random_floats(kCols, 2);
  const auto dy = random_floats(kRows * kCols, 3);
  std::vector<float> y(x.size());
  std::vector<float> rstd(kRows);
  std::vector<float> dx(x.size(), 0.5F);
  std::vector<float> dweight(weight.size(), 0.5F);
  rmsnorm_forward(x.data(), weight.data(), y.data(), rstd.data(), kRows, kCols, 1e-5F);
  rmsnorm_backward(
      dy.data(), x.data(), weight.data(), rstd.data(), dx.data(), dweight.data(), kRows, kCols);
  EXPECT_EQ(signature({y, rstd, dx, dweight}), 0x4D3D644811155DDCU);
}

TEST(BitSignature, Rope) {
  // Tables by hand: those of rope_tables come from libm.
  const auto cos = random_floats(kRows * 17, 4);
  const auto sin = random_floats(kRows * 17, 5);
  auto qkv = random_floats(kRows * 4 * 34, 6);
  rope_forward(qkv.data(), cos.data(), sin.data(), kRows, kRows, 3, 34, 4 * 34);
  std::vector<float> dqkv(qkv.size());
  const auto dq = random_floats(kRows * 2 * 34, 7);
  const auto dk = random_floats(kRows * 34, 8);
  rope_backward_pack(
      dq.data(), dk.data(), dk.data(), dqkv.data(), cos.data(), sin.data(), kRows, kRows, 2, 1, 34);
  EXPECT_EQ(signature({qkv, dqkv}), 0x4CEA1328BE673C1BU);
}

TEST(BitSignature, Swiglu) {
  auto gate_up = random_floats(kRows * 2 * kCols, 9, 10.0F);
  const auto dact = random_floats(kRows * kCols, 10);
  std::vector<float> act(dact.size());
  swiglu_forward(gate_up.data(), act.data(), kRows, kCols);
  swiglu_backward(gate_up.data(), dact.data(), kRows, kCols);
  EXPECT_EQ(signature({act, gate_up}), 0x6ED816D34893E406U);
}

TEST(BitSignature, LayerNorm) {
  const auto x = random_floats(kRows * kCols, 1);
  const auto weight = random_floats(kCols, 2);
  const auto dy = random_floats(kRows * kCols, 3);
  std::vector<float> y(x.size()), mean(kRows), rstd(kRows), dx(x.size(), 0.5F),
      dweight(weight.size(), 0.5F), dbias(weight.size(), 0.5F);
  layernorm_forward(x.data(),
                    weight.data(),
                    weight.data(),
                    y.data(),
                    mean.data(),
                    rstd.data(),
                    kRows,
                    kCols,
                    1e-5F);
  layernorm_backward(dy.data(),
                     x.data(),
                     weight.data(),
                     mean.data(),
                     rstd.data(),
                     dx.data(),
                     dweight.data(),
                     dbias.data(),
                     kRows,
                     kCols);
  EXPECT_EQ(signature({y, mean, rstd, dx, dweight, dbias}), 0x45A21C8C605EA98FU);
}

TEST(BitSignature, Gelu) {
  auto x = random_floats(kRows * kCols, 1, 5.0F);
  const auto dact = random_floats(kRows * kCols, 2);
  std::vector<float> act(x.size());
  gelu_forward(x.data(), act.data(), kRows * kCols);
  gelu_backward(x.data(), dact.data(), kRows * kCols);
  EXPECT_EQ(signature({act, x}), 0x838211C90F260C72U);
}

TEST(BitSignature, HeadNorm) {
  constexpr HeadCounts kHeads{.queries = 2, .keys = 1, .dim = 34};
  auto qkv = random_floats(kRows * 4 * 34, 1);
  const auto weight = random_floats(34, 2);
  const auto dq = random_floats(kRows * 2 * 34, 3);
  const auto dk = random_floats(kRows * 34, 4);
  std::vector<float> qk(at(kRows * 3 * 34)), rstd(at(kRows * 3)), dweight(34, 0.5F);
  headnorm_forward(
      qkv.data(), weight.data(), weight.data(), qk.data(), rstd.data(), kRows, kHeads, 1e-5F);
  headnorm_backward(dq.data(),
                    dk.data(),
                    dk.data(),
                    rstd.data(),
                    weight.data(),
                    weight.data(),
                    qkv.data(),
                    dweight.data(),
                    dweight.data(),
                    kRows,
                    kHeads);
  EXPECT_EQ(signature({qk, rstd, qkv, dweight}), 0x361BBAD73729AA32U);
}

TEST(BitSignature, CrossEntropy) {
  auto logits = random_floats(kRows * kCols, 11, 20.0F);
  const std::vector<std::int64_t> labels = {0, 1, 2, -100, 4, 1233, 600, 7, 8};
  std::vector<float> row_max(kRows);
  std::vector<float> sum(kRows);
  std::vector<float> target(kRows);
  logits_row_max(logits.data(), row_max.data(), kRows, kCols);
  logits_exp_sum(
      logits.data(), row_max.data(), labels.data(), 0, sum.data(), target.data(), kRows, kCols);
  (void)cross_entropy_finish(
      logits.data(), sum.data(), target.data(), labels.data(), 0, -100, 0.1F, kRows, kCols);
  EXPECT_EQ(signature({row_max, sum, target, logits}), 0x86831870FEAAD323U);
}

TEST(BitSignature, AdamWAndSumOfSquares) {
  auto param = random_floats(kCols, 12);
  const auto grad = random_floats(kCols, 13);
  auto exp_avg = random_floats(kCols, 14);
  std::vector<float> exp_avg_sq(param.size(), 0.25F);
  // step 1, so that pow(beta, step) is exact in every libm.
  adamw(param.data(),
        grad.data(),
        exp_avg.data(),
        exp_avg_sq.data(),
        kCols,
        {.weight_decay = 0.1, .step = 1, .grad_scale = 0.7});
  EXPECT_EQ(signature({param, exp_avg, exp_avg_sq}), 0x3599C630C526E794U);
  EXPECT_EQ(sum_of_squares(grad.data(), kCols), 0x1.aeaa32a3990e4p+8);
}

TEST(BitSignature, PermutedIndex) {
  std::vector<std::uint64_t> order;
  for (std::uint64_t i = 0; i < 8; ++i) order.push_back(permuted_index(i, 1000, 42));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{44, 812, 682, 143, 485, 554, 655, 49}));
}

}  // namespace
}  // namespace meshwright::kernels
