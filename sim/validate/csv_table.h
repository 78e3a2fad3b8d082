// CsvTable: a CSV file with a header, as text cells by column name.
//
// Reads: a user's file. Feeds: the families of sim/validate. Quoting as in RFC 4180 (libcsv).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/result.h"

namespace meshwright {

class CsvTable {
 public:
  /// Errors: a file that cannot be read, without a header, or with a column named twice.
  [[nodiscard]] static Result<CsvTable> read(const std::string& path);
  [[nodiscard]] static Result<CsvTable> parse(std::string_view text, const std::string& origin);

  [[nodiscard]] size_t num_rows() const { return rows_.size(); }
  [[nodiscard]] bool has_column(std::string_view name) const { return column(name).has_value(); }
  [[nodiscard]] bool has_columns(const std::vector<const char*>& names) const;
  /// Line of the file on which row `i` begins; the header is line 1.
  [[nodiscard]] int64_t line(size_t row) const { return rows_[row].line; }
  /// Cells fewer or more than the header's: a broken row, that no column should be read from.
  [[nodiscard]] bool is_broken(size_t row) const {
    return rows_[row].cells.size() != header_.size();
  }
  /// The cell without surrounding blanks; "" where the column or the cell is absent.
  [[nodiscard]] std::string_view cell(size_t row, std::string_view name) const;
  /// The cell as a finite number; nothing when empty or not a number.
  [[nodiscard]] std::optional<double> number(size_t row, std::string_view name) const;
  /// The cell as a number above zero; `fallback` otherwise.
  [[nodiscard]] double positive_or(size_t row, std::string_view name, double fallback) const;

 private:
  struct Row {
    int64_t line = 0;
    std::vector<std::string> cells;
  };
  [[nodiscard]] std::optional<size_t> column(std::string_view name) const;

  std::vector<std::string> header_;
  std::vector<Row> rows_;
};

}  // namespace meshwright
