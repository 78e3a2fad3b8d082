// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "sim/mesh/layout_pins.h"

namespace meshwright {
namespace {

std::string message(const std::string& layout, const std::string& stages = "") {
  const auto pins = parse_layout_pins(layout, stages);
  return pins ? "accepted" : to_string(pins.error());
}

TEST(LayoutPins, EveryAxisIsRead) {
  const LayoutPins p = parse_layout_pins(
                           "tp=2,pp=4,dp_replicate=2,dp_shard=8,zero_stage=1,sp=on,micro_batch=16,"
                           "recompute=full,schedule=gpipe,cp=1,ep=1,virtual_stages=1",
                           "20,20,20,20")
                           .value();
  EXPECT_EQ(p.tp, 2);
  EXPECT_EQ(p.pp, 4);
  EXPECT_EQ(p.dp_replicate, 2);
  EXPECT_EQ(p.dp_shard, 8);
  EXPECT_EQ(p.zero_stage, 1);
  EXPECT_EQ(p.sp, true);
  EXPECT_EQ(p.micro_batch, 16);
  EXPECT_EQ(p.recompute, Recompute::kFull);
  EXPECT_EQ(p.schedule, ScheduleKind::kGpipe);
  EXPECT_EQ(p.stages, (std::vector{20, 20, 20, 20}));
  EXPECT_EQ(p.dp, std::nullopt);
}

TEST(LayoutPins, StagesAlonePinTheirNumber) {
  EXPECT_EQ(parse_layout_pins("", "3,5").value().pp, 2);
  EXPECT_EQ(parse_layout_pins("pp=4", "3,5").value().pp, 4);  // validate() names the clash
  EXPECT_EQ(parse_layout_pins("", "").value().pp, std::nullopt);
}

TEST(LayoutPins, BadValuesNameAxisAndRange) {
  EXPECT_EQ(message("tp=0"), "--layout: tp = 0: must be a whole number from 1 to 1000000");
  EXPECT_EQ(message("pp=-2"), "--layout: pp = -2: must be a whole number from 1 to 1000000");
  EXPECT_EQ(message("tp=two"), "--layout: tp = two: must be a whole number from 1 to 1000000");
  EXPECT_EQ(message("tp=2.5"), "--layout: tp = 2.5: must be a whole number from 1 to 1000000");
  EXPECT_EQ(message("tp"), "--layout: tp = (nothing): must be a whole number from 1 to 1000000");
  EXPECT_EQ(message("tp=99999999999999999999"),
            "--layout: tp = 99999999999999999999: must be a whole number from 1 to 1000000");
  EXPECT_EQ(message("zero_stage=-1"),
            "--layout: zero_stage = -1: must be a whole number from 0 to 1000000");
  EXPECT_EQ(message("sp=yes"), "--layout: sp = yes: must be on or off");
  EXPECT_EQ(message("schedule=zb"),
            "--layout: schedule = zb: must be one of gpipe, 1f1b, interleaved, zb_h1, zb_h2, zb_v, "
            "dualpipe; did you mean zb_v?");
  EXPECT_EQ(message("recompute=ful"),
            "--layout: recompute = ful: must be one of none, selective, full; did you mean full?");
  EXPECT_EQ(message("", "3,x"), "--stages: stages = x: must be a whole number from 0 to 1000000");
  EXPECT_EQ(message("", "3,,5"),
            "--stages: stages = (nothing): must be a whole number from 0 to 1000000");
}

TEST(LayoutPins, UnknownAxisSuggestsTheNearest) {
  EXPECT_EQ(message("tpp=2"), "--layout: tpp = 2: is not an axis of a layout; did you mean tp?");
  EXPECT_EQ(message("microbatch=2"),
            "--layout: microbatch = 2: is not an axis of a layout; did you mean micro_batch?");
}

TEST(BalancedStages, CoverTheLayersAndSpareTheEnds) {
  EXPECT_EQ(balanced_stages(80, 8), std::vector<int>(8, 10));
  // Megatron-LM issue 1304: 30 layers on 4 stages must not become 28.
  EXPECT_EQ(balanced_stages(30, 4), (std::vector{7, 8, 8, 7}));
  EXPECT_EQ(balanced_stages(7, 4), (std::vector{2, 2, 2, 1}));
  EXPECT_EQ(balanced_stages(5, 2), (std::vector{3, 2}));
  for (int pp = 1; pp <= 16; ++pp) {
    for (int64_t layers = pp; layers < 50; ++layers) {
      const std::vector<int> s = balanced_stages(layers, pp);
      EXPECT_EQ(std::accumulate(s.begin(), s.end(), int64_t{0}), layers);
      const auto [low, high] = std::minmax_element(s.begin(), s.end());
      EXPECT_LE(*high - *low, 1);
    }
  }
}

TEST(LayoutSummary, NamesWhatIsOn) {
  EXPECT_EQ(summary({.dp_replicate = 2,
                     .dp_shard = 4,
                     .tp = 2,
                     .sp = true,
                     .pp = 2,
                     .micro_batch = 3,
                     .zero_stage = 1,
                     .recompute = Recompute::kFull,
                     .stages = {3, 5}}),
            "dp2x4 tp2 sp pp2 mb3 zero1 1f1b recompute stages 3+5");
  EXPECT_EQ(summary({.dp_replicate = 4}), "dp4 tp1 pp1 mb1");
}

}  // namespace
}  // namespace meshwright
