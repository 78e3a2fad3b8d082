// SPDX-License-Identifier: Apache-2.0
#include "sim/core/result.h"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return Error{.field = "x", .value = std::to_string(x), .rule = "must be even"};
  return x / 2;
}

Result<int> quarter(int x) {
  MW_ASSIGN_OR_RETURN(const int h, half(x));
  return half(h);
}

TEST(Result, CarriesTheFirstError) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(to_string(quarter(6).error()), "x = 3: must be even");
}

TEST(Result, MessageNamesPlaceFieldValueRuleAndRemedy) {
  const Error e{.where = "--layout",
                .field = "tp",
                .value = "3",
                .rule = "must divide 64",
                .remedy = "use 2"};
  EXPECT_EQ(to_string(e), "--layout: tp = 3: must divide 64; use 2");
}

TEST(ResultDeathTest, ValueOfAnErrorAborts) { EXPECT_DEATH((void)half(3).value(), "must be even"); }

}  // namespace
}  // namespace meshwright
