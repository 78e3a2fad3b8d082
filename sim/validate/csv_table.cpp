// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/csv_table.h"

#include <csv.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/core/json_reader.h"

namespace meshwright {
namespace {

/// What libcsv calls back into. A record ends on the line where its last field ends; embedded line
/// ends are counted from the fields.
struct Collector {
  std::vector<std::string> cells;
  std::vector<std::pair<int64_t, std::vector<std::string>>> records;
  int64_t line = 1;
  bool quoted = false;  ///< Inside a quoted field: an odd number of quotes since the record began.

  static void on_field(void* text, size_t size, void* self) {
    static_cast<Collector*>(self)->cells.emplace_back(static_cast<const char*>(text), size);
  }
  static void on_record(int, void* self) {
    auto& c = *static_cast<Collector*>(self);
    const int64_t begin = c.line;
    for (const std::string& cell : c.cells) c.line += std::count(cell.begin(), cell.end(), '\n');
    ++c.line;
    c.records.emplace_back(begin, std::move(c.cells));
    c.cells.clear();
    c.quoted = false;
  }
};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

Result<CsvTable> CsvTable::read(const std::string& path) {
  MW_ASSIGN_OR_RETURN(const std::string text, read_text_file(path));
  return parse(text, path);
}

Result<CsvTable> CsvTable::parse(std::string_view text, const std::string& origin) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a spreadsheet's byte order mark
  csv_parser parser;
  MW_CHECK(csv_init(&parser, CSV_APPEND_NULL) == 0);
  Collector found;
  // libcsv skips blank lines; keep the count of lines right by feeding it one line end at a time.
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view piece = text.substr(at, end - at);
    const bool blank = !found.quoted && trimmed(piece).empty();
    const size_t records = found.records.size();
    if (std::count(piece.begin(), piece.end(), '"') % 2 != 0) found.quoted = !found.quoted;
    csv_parse(
        &parser, piece.data(), piece.size(), Collector::on_field, Collector::on_record, &found);
    if (blank && found.records.size() == records) ++found.line;
    at = end;
  }
  csv_fini(&parser, Collector::on_field, Collector::on_record, &found);
  csv_free(&parser);

  if (found.records.empty()) {
    return Error{.where = origin,
                 .rule = "holds no header line",
                 .remedy = "the first line of a CSV names its columns"};
  }
  CsvTable table;
  for (const std::string& name : found.records.front().second) {
    table.header_.emplace_back(trimmed(name));
  }
  for (size_t i = 0; i < table.header_.size(); ++i) {
    if (std::count(table.header_.begin(), table.header_.end(), table.header_[i]) > 1) {
      return Error{.where = origin,
                   .field = "header",
                   .value = table.header_[i],
                   .rule = "names a column twice"};
    }
  }
  for (size_t i = 1; i < found.records.size(); ++i) {
    table.rows_.push_back({found.records[i].first, std::move(found.records[i].second)});
  }
  return table;
}

std::optional<size_t> CsvTable::column(std::string_view name) const {
  const auto at = std::find(header_.begin(), header_.end(), name);
  if (at == header_.end()) return std::nullopt;
  return static_cast<size_t>(at - header_.begin());
}

std::string_view CsvTable::cell(size_t row, std::string_view name) const {
  const std::optional<size_t> i = column(name);
  if (!i || *i >= rows_[row].cells.size()) return {};
  return trimmed(rows_[row].cells[*i]);
}

std::optional<double> CsvTable::number(size_t row, std::string_view name) const {
  const std::string_view text = cell(row, name);
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

double CsvTable::positive_or(size_t row, std::string_view name, double fallback) const {
  const std::optional<double> x = number(row, name);
  return x && *x > 0 ? *x : fallback;
}

bool CsvTable::has_columns(const std::vector<const char*>& names) const {
  return std::all_of(names.begin(), names.end(), [&](const char* n) { return has_column(n); });
}

}  // namespace meshwright
