// A table of attention times: one row per (gpu, batch_size, isl, num_heads, num_key_value_heads,
// head_dim, step), latency in milliseconds; isl new tokens after `step` cached ones.
#pragma once

#include <vector>

#include "sim/cost/operators/attention_model.h"
#include "sim/validate/csv_table.h"
#include "sim/validate/measured_operator.h"

namespace meshwright {

struct AttentionRow : MeasuredOperator {
  AttentionCall shape;
  /// One new token: the decode kernels run, whatever the cache.
  [[nodiscard]] bool decodes() const { return shape.new_tokens == 1; }
};

inline const std::vector<const char*> kAttentionColumns = {"gpu",
                                                           "batch_size",
                                                           "isl",
                                                           "num_heads",
                                                           "num_key_value_heads",
                                                           "head_dim",
                                                           "step",
                                                           "latency_ms"};

/// One per row of the table, in order.
[[nodiscard]] std::vector<AttentionRow> read_attention_rows(const CsvTable& table);

}  // namespace meshwright
