// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/measured_operator.h"

#include <fmt/format.h>

#include <cmath>

namespace meshwright {
namespace {

constexpr double kLargestWhole = 1e9;
constexpr double kMicrosecondsPerMillisecond = 1e3;

}  // namespace

RowReader::RowReader(const CsvTable& table, size_t row) : table_(table), row_(row) {
  if (table.is_broken(row)) skip("has more or fewer cells than the header");
}

int64_t RowReader::whole(const char* column, int64_t min) {
  const std::optional<double> x = table_.number(row_, column);
  if (!x || *x != std::floor(*x) || *x < static_cast<double>(min) || *x > kLargestWhole) {
    skip(fmt::format("{} = \"{}\" is not a whole number from {} to 1e9",
                     column,
                     table_.cell(row_, column),
                     min));
    return min;
  }
  return static_cast<int64_t>(*x);
}

double RowReader::positive(const char* column) {
  const std::optional<double> x = table_.number(row_, column);
  if (!x || *x <= 0) {
    skip(fmt::format("{} = \"{}\" is not a number above zero", column, table_.cell(row_, column)));
    return 1;
  }
  return *x;
}

std::string RowReader::text(const char* column) {
  const std::string_view cell = table_.cell(row_, column);
  if (cell.empty()) skip(fmt::format("{} is empty", column));
  return std::string(cell);
}

void RowReader::skip(const std::string& reason) {
  if (skipped_.empty()) skipped_ = reason;
}

void read_measured_operator(const CsvTable& table,
                            size_t row,
                            RowReader& reader,
                            MeasuredOperator& result) {
  result.line = table.line(row);
  result.device = reader.text("gpu");
  result.spec = find_builtin_gpu(result.device);
  if (result.spec == nullptr) {
    reader.skip(fmt::format("device \"{}\" is not a built-in one", result.device));
  }
  result.measured_us = reader.positive("latency_ms") * kMicrosecondsPerMillisecond;
  result.skipped = reader.skipped();
}

std::string joined_cells(const CsvTable& table,
                         size_t row,
                         const std::vector<const char*>& columns) {
  std::string joined;
  for (const char* column : columns) {
    if (!joined.empty()) joined += ' ';
    joined += table.cell(row, column);
  }
  return joined;
}

}  // namespace meshwright
