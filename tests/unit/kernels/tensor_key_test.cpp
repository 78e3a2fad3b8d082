// SPDX-License-Identifier: Apache-2.0
#include "kernels/random/tensor_key.h"

#include <gtest/gtest.h>

namespace meshwright::kernels {
namespace {

// The 64-bit FNV-1a vectors published with the algorithm (Fowler, Noll and Vo).
TEST(TensorKey, Fnv1aKnownAnswers) {
  EXPECT_EQ(tensor_key(""), 0xcbf29ce484222325U);
  EXPECT_EQ(tensor_key("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(tensor_key("foobar"), 0x85944171f73967e8U);
}

}  // namespace
}  // namespace meshwright::kernels
