// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/attention_table.h"

namespace meshwright {
namespace {

/// Hopper falls back to another kernel: 130-500 us for caches of a few kilobytes.
bool is_marked_attention(const DeviceSpec& device, const AttentionCall& s) {
  return device.architecture == "hopper" && s.new_tokens == 1 && s.head_dim > 256;
}

}  // namespace

std::vector<AttentionRow> read_attention_rows(const CsvTable& table) {
  std::vector<AttentionRow> rows(table.num_rows());
  for (size_t i = 0; i < rows.size(); ++i) {
    AttentionRow& row = rows[i];
    RowReader reader(table, i);
    row.shape = {.batch = reader.whole("batch_size", 1),
                 .new_tokens = reader.whole("isl", 1),
                 .cached = reader.whole("step", 0),
                 .num_heads = reader.whole("num_heads", 1),
                 .num_kv_heads = reader.whole("num_key_value_heads", 1),
                 .head_dim = reader.whole("head_dim", 1)};
    if (row.shape.num_heads % row.shape.num_kv_heads != 0) {
      reader.skip("num_key_value_heads does not divide num_heads");
    }
    row.id = joined_cells(
        table,
        i,
        {"gpu", "batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "step"});
    read_measured_operator(table, i, reader, row);
    if (row.skipped.empty()) row.marked = is_marked_attention(*row.spec, row.shape);
  }
  return rows;
}

}  // namespace meshwright
