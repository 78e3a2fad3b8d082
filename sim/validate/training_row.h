// One row of a table of training steps, by column name.
#pragma once

#include <optional>
#include <string_view>

#include "sim/validate/csv_table.h"

namespace meshwright {

class TrainingRow {
 public:
  TrainingRow(const CsvTable& table, size_t row) : t_(table), row_(row) {}

  [[nodiscard]] std::string_view text(const char* name) const { return t_.cell(row_, name); }
  [[nodiscard]] std::optional<double> number(const char* name) const {
    return t_.number(row_, name);
  }
  [[nodiscard]] double positive(const char* name, double fallback) const {
    return t_.positive_or(row_, name, fallback);
  }

 private:
  const CsvTable& t_;
  size_t row_;
};

}  // namespace meshwright
