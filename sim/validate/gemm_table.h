// A table of matmul times: one row per (gpu, dtype, m, n, k), latency in milliseconds.
#pragma once

#include <vector>

#include "sim/cost/operators/gemm_model.h"
#include "sim/validate/csv_table.h"
#include "sim/validate/measured_operator.h"

namespace meshwright {

struct GemmRow : MeasuredOperator {
  GemmKind kind = GemmKind::kBf16;
  GemmShape shape;
};

inline const std::vector<const char*> kGemmColumns = {"gpu", "dtype", "m", "n", "k", "latency_ms"};

/// One per row of the table, in order.
[[nodiscard]] std::vector<GemmRow> read_gemm_rows(const CsvTable& table);

}  // namespace meshwright
