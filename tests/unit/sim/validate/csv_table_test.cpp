// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/temporary_file.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

CsvTable parsed(const std::string& text) {
  auto table = CsvTable::parse(text, "t.csv");
  EXPECT_TRUE(table.has_value()) << to_string(table.error());
  return std::move(*table);
}

TEST(CsvTable, CellsByColumn) {
  const CsvTable t = parsed("a,b\n 1.5 ,x y\n-2e3,\n");
  ASSERT_EQ(t.num_rows(), 2u);
  EXPECT_EQ(t.number(0, "a"), 1.5);
  EXPECT_EQ(t.cell(0, "b"), "x y");
  EXPECT_EQ(t.number(1, "a"), -2000.0);
  EXPECT_EQ(t.cell(1, "b"), "");
  EXPECT_EQ(t.number(1, "b"), std::nullopt);
  EXPECT_EQ(t.cell(0, "c"), "");
  EXPECT_FALSE(t.has_column("c"));
  EXPECT_TRUE(t.has_column("b"));
}

TEST(CsvTable, OnlyFiniteWholeCellsAreNumbers) {
  const CsvTable t = parsed("a\n1x\ninf\nnan\n1 2\n0x10\n7\n");
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(t.number(i, "a"), std::nullopt) << i;
  EXPECT_EQ(t.number(5, "a"), 7.0);
}

TEST(CsvTable, LinesAcrossQuotedLineEndsAndBlankLines) {
  // Line 1 header; 2-4 a row with two line ends inside quotes; 5 and 6 blank; 7 a row; 8 a row.
  const CsvTable t = parsed("a,b\n\"x\n\ny\",1\n\n   \nz,2\nw,3\n");
  ASSERT_EQ(t.num_rows(), 3u);
  EXPECT_EQ(t.cell(0, "a"), "x\n\ny");
  EXPECT_EQ(t.line(0), 2);
  EXPECT_EQ(t.line(1), 7);
  EXPECT_EQ(t.line(2), 8);
}

TEST(CsvTable, QuotesCommasAndWindowsLineEnds) {
  const CsvTable t = parsed("a,b\r\n\"1,5\",\"say \"\"hi\"\"\"\r\n\r\nq,r\r\n");
  ASSERT_EQ(t.num_rows(), 2u);
  EXPECT_EQ(t.cell(0, "a"), "1,5");
  EXPECT_EQ(t.cell(0, "b"), "say \"hi\"");
  EXPECT_EQ(t.line(0), 2);
  EXPECT_EQ(t.line(1), 4);
}

TEST(CsvTable, LastLineWithoutLineEndAndByteOrderMark) {
  const CsvTable t = parsed(
      "\xEF\xBB\xBF"
      "a,b\n1,2");
  ASSERT_EQ(t.num_rows(), 1u);
  EXPECT_EQ(t.number(0, "a"), 1.0);
  EXPECT_EQ(t.number(0, "b"), 2.0);
}

TEST(CsvTable, RowsOfAnotherWidthAreBroken) {
  const CsvTable t = parsed("a,b\n1\n1,2\n1,2,3\n");
  ASSERT_EQ(t.num_rows(), 3u);
  EXPECT_TRUE(t.is_broken(0));
  EXPECT_FALSE(t.is_broken(1));
  EXPECT_TRUE(t.is_broken(2));
  EXPECT_EQ(t.cell(0, "b"), "");
}

TEST(CsvTable, Errors) {
  EXPECT_THAT(to_string(CsvTable::parse("", "e.csv").error()),
              HasSubstr("e.csv: holds no header line"));
  EXPECT_THAT(to_string(CsvTable::parse("a,b, a\n", "e.csv").error()),
              HasSubstr("names a column twice"));
  EXPECT_FALSE(CsvTable::read("no/such.csv").has_value());
}

}  // namespace
}  // namespace meshwright
