// Measured collectives: one CSV row as an operation on a group over named links.
//
// Reads: a table with the columns gpu, interconnect, ngpus, op, bytes and time_us, e.g. a converted
// nccl-tests log. Feeds: the fit (collective_fit.h) and `meshwright validate`. Only `time_us` is
// used: busbw is time in another unit, multiplied by (n-1)/n, and is no link's speed.
#pragma once

#include <string>
#include <vector>

#include "sim/cost/collectives/nodes_time.h"
#include "sim/validate/csv_table.h"

namespace meshwright {

struct CollectiveRow {
  size_t table_row = 0;
  std::string device;   ///< The cell gpu.
  std::string source;   ///< Project of the source, with " (marked)" where `marked`.
  std::string link;     ///< Generation inside a node.
  std::string network;  ///< Class between nodes; empty inside one.
  CommOp op = CommOp::kAllReduce;
  NodesGroup group;
  double bytes = 0;
  double time_us = 0;
  /// Known to be disturbed, not measured on the links that the row names, or timed from the host
  /// below 4 MiB, where its 20 us to launch outweigh the collective: predicted and shown, never
  /// fitted.
  bool marked = false;
  bool relabelled = false;  ///< Crosses nodes although its label names links inside one.
  /// By nccl-tests of a known NCCL version with a thread or process per device: kernels back to
  /// back. Else (torch, a profiler, one thread that launches all devices) the host's time comes on
  /// top.
  bool kernel_timed = false;
  std::string skipped;  ///< Why the row cannot be used; the fields above are then not all filled.
};

/// One per row of the table, in its order.
[[nodiscard]] std::vector<CollectiveRow> collective_rows(const CsvTable& table);

/// Name of the project that a source cell cites: "ai-dynamo/aiconfigurator@095f58a5 systems/..." is
/// "aiconfigurator".
[[nodiscard]] std::string source_project(std::string_view source);

}  // namespace meshwright
