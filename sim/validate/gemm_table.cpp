// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/gemm_table.h"

#include <fmt/format.h>

namespace meshwright {
namespace {

/// Sets whose rows disagree with each other or with the hardware.
bool is_marked_gemm(const std::string& device, GemmKind kind, const GemmShape& s) {
  // Older kernels in two populations: up to 1142 TFLOP/s, above the 989 of the arithmetic it uses,
  // and 3-26 TFLOP/s at n <= 256, m >= 2048.
  if (device == "h100" && kind == GemmKind::kInt8WeightOnly) return true;
  // A second population: m = 1, k = 256, n = 2560 takes 18.9 us, m = 2 takes 5.5 us.
  if (device == "b200" && kind == GemmKind::kFp8 && s.m <= 8) return true;
  // The library does not split k here: 18-35 us, more than far larger matmuls take.
  return device == "l40s" && kind == GemmKind::kBf16 && s.m <= 8 && s.n <= 64 && s.k >= 4096;
}

}  // namespace

std::vector<GemmRow> read_gemm_rows(const CsvTable& table) {
  std::vector<GemmRow> rows(table.num_rows());
  for (size_t i = 0; i < rows.size(); ++i) {
    GemmRow& row = rows[i];
    RowReader reader(table, i);
    const std::string dtype = reader.text("dtype");
    row.shape = {.m = reader.whole("m", 1), .n = reader.whole("n", 1), .k = reader.whole("k", 1)};
    if (const std::optional<GemmKind> kind = gemm_kind(dtype)) {
      row.kind = *kind;
    } else {
      reader.skip(fmt::format("dtype \"{}\" has no model", dtype));
    }
    row.id = joined_cells(table, i, {"gpu", "dtype", "m", "n", "k"});
    read_measured_operator(table, i, reader, row);
    if (row.skipped.empty()) row.marked = is_marked_gemm(row.spec->name, row.kind, row.shape);
  }
  return rows;
}

}  // namespace meshwright
