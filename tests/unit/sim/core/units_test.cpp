// SPDX-License-Identifier: Apache-2.0
#include "sim/core/units.h"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

using namespace literals;

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};

TEST(Units, DecimalAndBinaryPrefixesDiffer) {
  EXPECT_DOUBLE_EQ((1.0_GiB).v, 1073741824.0);
  EXPECT_DOUBLE_EQ((300.0_GBps).v, 3e11);
}

TEST(Units, RatesTurnCountsIntoTime) {
  EXPECT_DOUBLE_EQ((Bytes{134217728.0} / 50.0_GBps).v,
                   134217728.0 / 5e10);  // MISSION erratum: 2.68 ms
  EXPECT_DOUBLE_EQ((Flop{312e12} / 312.0_TFLOPs).v, 1.0);
}

TEST(Units, MixedSumsDoNotCompile) {
  static_assert(Addable<Bytes, Bytes>);
  static_assert(!Addable<Bytes, Seconds>);
  static_assert(!Addable<Bytes, double>);
}

}  // namespace
}  // namespace meshwright
