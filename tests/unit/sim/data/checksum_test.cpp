// SPDX-License-Identifier: Apache-2.0
#include "sim/data/checksum.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace meshwright {
namespace {

uint64_t of(std::string_view text) { return checksum64(std::as_bytes(std::span(text))); }

// Published XXH64 vectors (seed 0).
TEST(Checksum64, MatchesThePublishedVectors) {
  EXPECT_EQ(of(""), 0xEF46DB3751D8E999U);
  EXPECT_EQ(of("a"), 0xD24EC4F1A98C6E5BU);
  EXPECT_EQ(of("abc"), 0x44BC2CF5AD770999U);
  EXPECT_EQ(of("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1U);
}

TEST(Checksum64, DoesNotDependOnThePieces) {
  std::vector<std::byte> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  const uint64_t whole = checksum64(bytes);
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    Checksum64 sum;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      sum.update(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    }
    ASSERT_EQ(sum.digest(), whole) << "pieces of " << piece;
  }
}

}  // namespace
}  // namespace meshwright
