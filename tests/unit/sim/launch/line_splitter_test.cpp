// SPDX-License-Identifier: Apache-2.0
#include "sim/launch/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace meshwright {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Lines = std::vector<std::pair<std::string, bool>>;

/// Splits `text`, given in pieces of `piece` bytes, with a limit of 4 bytes a line.
Lines split(const std::string& text, size_t piece) {
  Lines lines;
  LineSplitter splitter(4);
  auto on_line = [&lines](std::string_view line, bool cut) { lines.emplace_back(line, cut); };
  for (size_t at = 0; at < text.size(); at += piece) {
    splitter.add(std::string_view(text).substr(at, piece), on_line);
  }
  splitter.finish(on_line);
  splitter.finish(on_line);
  return lines;
}

TEST(LineSplitter, LinesDoNotDependOnThePieces) {
  for (size_t piece = 1; piece < 12; ++piece) {
    EXPECT_THAT(
        split("ab\n\nabcd\nlast", piece),
        ElementsAre(Pair("ab", false), Pair("", false), Pair("abcd", false), Pair("last", false)));
    EXPECT_THAT(split("abcde\nx\nabcdefghi", piece),
                ElementsAre(Pair("abcd", true), Pair("x", false), Pair("abcd", true)));
    EXPECT_THAT(split("ab\n", piece), ElementsAre(Pair("ab", false)));
    EXPECT_THAT(split("", piece), ElementsAre());
  }
}

}  // namespace
}  // namespace meshwright
