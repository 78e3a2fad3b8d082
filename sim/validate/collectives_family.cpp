// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/collectives_family.h"

#include <fmt/format.h>

#include "sim/fit/collective_rows.h"

namespace meshwright {
namespace {

ValidatedRow validated_collective(const CsvTable& table, const CollectiveRow& r) {
  ValidatedRow v{.line = table.line(r.table_row), .source = r.source, .device = r.device};
  v.unit = "us";
  v.id = fmt::format("{} n={} {} bytes",
                     table.cell(r.table_row, "op"),
                     table.cell(r.table_row, "ngpus"),
                     table.cell(r.table_row, "bytes"));
  v.skipped = r.skipped;
  if (!v.skipped.empty()) return v;
  const CollectiveConstants& constants = collective_constants();
  const LinkConstants* link = constants.link(r.link);
  if (link == nullptr) {
    v.skipped = "no constants for the link generation " + r.link;
    return v;
  }
  double low = link->measured_low, high = link->measured_high;
  if (r.network.empty()) {
    v.predicted = domain_time_us(constants.nccl,
                                 *link,
                                 r.op,
                                 r.bytes,
                                 {r.group.num_ranks, r.group.line_rate_GBps, r.group.nvls});
  } else {
    const NetworkConstants* network = constants.network(r.network);
    if (network == nullptr) {
      v.skipped = "no constants for the network " + r.network;
      return v;
    }
    v.predicted = nodes_time_us(constants.nccl, *link, *network, r.op, r.bytes, r.group);
    low = network->measured_low;
    high = network->measured_high;
  }
  v.bound_low = *v.predicted * low;
  v.bound_high = *v.predicted * high;
  if (r.time_us > 0) {
    v.measured = r.time_us;
  } else {
    v.skipped = "no time_us to compare with";
  }
  return v;
}

}  // namespace

std::vector<ValidatedRow> validate_collectives(const CsvTable& table) {
  std::vector<ValidatedRow> rows;
  for (const CollectiveRow& r : collective_rows(table)) {
    rows.push_back(validated_collective(table, r));
  }
  return rows;
}

}  // namespace meshwright
