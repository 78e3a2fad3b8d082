// What the tables of operator times have in common: whose row it is, what was measured, and whether
// it can be used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/spec/cluster_spec.h"
#include "sim/validate/csv_table.h"

namespace meshwright {

struct MeasuredOperator {
  int64_t line = 0;
  std::string id;                    ///< Key columns, joined by blanks.
  std::string device;                ///< As the table names it.
  const DeviceSpec* spec = nullptr;  ///< Null only where `skipped` says why.
  double measured_us = 0;
  bool marked = false;  ///< Of a set known to be unlike the others: not fitted, reported apart.
  std::string skipped;  ///< Why the row cannot be used; empty when it can.
};

/// Reads the cells of one row; the first that cannot be read is the reason to skip it.
class RowReader {
 public:
  RowReader(const CsvTable& table, size_t row);
  int64_t whole(const char* column, int64_t min);
  double positive(const char* column);
  std::string text(const char* column);
  void skip(const std::string& reason);
  [[nodiscard]] const std::string& skipped() const { return skipped_; }

 private:
  const CsvTable& table_;
  size_t row_;
  std::string skipped_;
};

/// Fills line, device, spec, measured_us and skipped from `gpu` and `latency_ms`.
void read_measured_operator(const CsvTable& table,
                            size_t row,
                            RowReader& reader,
                            MeasuredOperator& result);

/// The cells of `columns`, joined by blanks.
[[nodiscard]] std::string joined_cells(const CsvTable& table,
                                       size_t row,
                                       const std::vector<const char*>& columns);

}  // namespace meshwright
