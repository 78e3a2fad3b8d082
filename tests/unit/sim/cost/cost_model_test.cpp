// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/cost/matmul_model.h"
#include "tests/unit/sim/plans.h"

namespace meshwright {
namespace {

using testing::near_rel;

DeviceSpec one_unit() {
  DeviceSpec d;
  d.num_sms = 1;
  d.matmul_fraction = 0.5;
  return d;
}

TEST(TiledMatmul, WholeTilesRunAtTheFittedFraction) {
  EXPECT_DOUBLE_EQ(tiled_matmul_time(one_unit(), FlopPerSecond{1e12}, 256, 128, 1000).v,
                   2.0 * 256 * 128 * 1000 / (0.5 * 1e12));
}

TEST(TiledMatmul, OddShapesPayForTheWholeOfTheBestTile) {
  // 257 x 128: 2 tiles of 256x128 = 65536; 3 of 128x128 / 0.89 = 55227; 6 of 128x64 / 0.90 = 54613.
  EXPECT_DOUBLE_EQ(tiled_matmul_time(one_unit(), FlopPerSecond{1e12}, 257, 128, 1000).v,
                   2.0 * 6 * 128 * 64 * 1000 / (0.5 * 0.90 * 1e12));
}

TEST(TiledMatmul, AWaveTooManyCountsInFull) {
  DeviceSpec d = one_unit();
  d.num_sms = 108;
  const auto t = [&](int64_t tiles) {
    return tiled_matmul_time(d, FlopPerSecond{1e12}, tiles * 256, 128, 64).v;
  };
  EXPECT_DOUBLE_EQ(t(1), t(27));  // even in tiles of 128 x 64, one wave
  EXPECT_DOUBLE_EQ(t(109), t(108) * std::min({2.0, 3 * 0.5 / 0.89, 5 * 0.25 / 0.90}));
}

TEST(CostModel, SmallMatmulIsBoundByMemory) {
  const ClusterSpec c = testing::builtin_cluster("1xh100");
  Operator op{.kind = OpKind::kLinear, .inputs = {}, .outputs = {}, .m = 1, .n = 8192, .k = 8192};
  op.flop = Flop{2.0 * 8192 * 8192};
  op.bytes = Bytes{2.0 * 8192 * 8192};
  const double streamed = op.bytes.v / (c.device.memory_bandwidth.v * c.device.memory_fraction);
  EXPECT_TRUE(near_rel(CostModel(c, nullptr).operator_time(op, Precision::kBf16, {}).v,
                       streamed + c.device.launch.v,
                       1e-12));
}

TEST(SampledMatmul, AtASampleItIsTheSamplesRateAndBetweenItIsBetween) {
  const std::vector<MatmulSample> samples = {
      {.kind = OpKind::kLinear,
       .m = 256,
       .n = 256,
       .k = 256,
       .seconds = 2.0 * 256 * 256 * 256 / 2e9},
      {.kind = OpKind::kLinear,
       .m = 4096,
       .n = 4096,
       .k = 4096,
       .seconds = 2.0 * 4096 * 4096 * 4096 / 8e9},
      {.kind = OpKind::kLinearBackwardInput, .m = 256, .n = 256, .k = 256, .seconds = 1}};
  const auto rate = [&](int64_t n) {
    return sampled_matmul_rate(samples, OpKind::kLinear, n, n, n).v;
  };
  EXPECT_TRUE(near_rel(rate(256), 2e9, 1e-6));
  EXPECT_TRUE(near_rel(rate(4096), 8e9, 1e-6));
  EXPECT_TRUE(near_rel(rate(1024), 5e9, 1e-6));  // halfway in log space
  EXPECT_GE(rate(1), 2e9);
  EXPECT_LE(rate(1 << 20), 8e9);
}

TEST(CostModel, CalibrationIsForLocalRanksOnly) {
  const auto calibration = std::make_shared<const Calibration>(testing::ideal_calibration());
  EXPECT_FALSE(CostModel(testing::builtin_cluster("8xh100"), calibration).calibrated());
  const CostModel local(testing::builtin_cluster("8xlocal"), calibration);
  EXPECT_TRUE(local.calibrated());
  EXPECT_DOUBLE_EQ(local.peak(Precision::kFp32).v, 1e9);
  EXPECT_EQ(local.calibration_id(), "ideal");
}

TEST(CostModel, HostTimeShowsOnlyWhereItIsLongerThanTheDevice) {
  const ClusterSpec c = testing::builtin_cluster("1xh100");
  const CostModel cost(c, nullptr);
  const auto list = [&](double bytes) {
    OperatorStep s{
        .op = {.kind = OpKind::kAdd, .inputs = {}, .outputs = {}}, .allocates = {}, .releases = {}};
    s.op.bytes = Bytes{bytes};
    return cost.list_time({s}, BlockKind::kDecoder, true, Precision::kBf16, {});
  };
  EXPECT_TRUE(near_rel(list(1e3).total().v, c.device.host_per_layer.v, 1e-12));
  EXPECT_EQ(list(1e12).host.v, 0);
}

TEST(CostModel, AdamMovesItsBytes) {
  const ClusterSpec c = testing::builtin_cluster("1xh100");
  const double rate = c.device.memory_bandwidth.v * c.device.memory_fraction;
  EXPECT_TRUE(near_rel(CostModel(c, nullptr).optimizer_time(1e9, Precision::kBf16).v,
                       34e9 / rate + c.device.launch.v,
                       1e-12));
  EXPECT_TRUE(near_rel(CostModel(c, nullptr).optimizer_time(1e9, Precision::kFp32).v,
                       28e9 / rate + c.device.launch.v,
                       1e-12));
}

}  // namespace
}  // namespace meshwright
