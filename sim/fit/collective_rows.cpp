// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/collective_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <regex>

namespace meshwright {
namespace {

bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// Below, launching from the host takes longer than the collective (torch, a profiler, or one
/// thread that launches eight devices: 40 us at every size up to 1 MiB where kernels take 17-25).
constexpr double kHostBoundBytes = 4194304;

struct NamedOp {
  std::string_view name;
  CommOp op;
};
/// As the tables and the nccl-tests programs spell them.
constexpr std::array<NamedOp, 9> kNamedOps{{{"all_reduce", CommOp::kAllReduce},
                                            {"all_gather", CommOp::kAllGather},
                                            {"reduce_scatter", CommOp::kReduceScatter},
                                            {"alltoall", CommOp::kAllToAll},
                                            {"all_to_all", CommOp::kAllToAll},
                                            {"send_recv", CommOp::kSendRecv},
                                            {"sendrecv", CommOp::kSendRecv},
                                            {"AllReduce", CommOp::kAllReduce},
                                            {"AllGather", CommOp::kAllGather}}};

/// First capture of `pattern` in `text` as a whole number, or 0.
int captured_count(std::string_view text, const std::regex& pattern) {
  std::match_results<std::string_view::const_iterator> m;
  if (!std::regex_search(text.begin(), text.end(), m, pattern)) return 0;
  int value = 0;
  const std::string digits = m[1].str();
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

int nodes_named(std::string_view interconnect) {
  static const std::regex kNodes(R"((\d+) nodes)");
  static const std::regex kTimes(R"(^(\d+)x )");
  return std::max({1, captured_count(interconnect, kNodes), captured_count(interconnect, kTimes)});
}

/// Line rate of one NIC per rank in GB/s, from "8x400Gbps" or "3200Gbps" of eight; 0 when unnamed.
double nic_rate_named(std::string_view interconnect, int ranks_per_node) {
  static const std::regex kEach(R"(\d+x(\d+)Gb)");
  static const std::regex kTogether(R"((\d+)Gb)");
  constexpr double kBitsPerByte = 8;
  if (const int each = captured_count(interconnect, kEach); each > 0) return each / kBitsPerByte;
  const int together = captured_count(interconnect, kTogether);
  return together > 0 ? together / kBitsPerByte / ranks_per_node : 0.0;
}

std::string network_named(std::string_view interconnect) {
  if (mentions(interconnect, "EFA")) return "efa";
  if (mentions(interconnect, "TCPXO")) return "tcpxo";
  if (mentions(interconnect, "HDR")) return "ib_hdr";
  if (mentions(interconnect, "IB") || mentions(interconnect, "InfiniBand") ||
      mentions(interconnect, "NDR") || mentions(interconnect, "RoCE")) {
    return "ib_ndr";
  }
  return "";
}

/// The link that joins `n` devices; "" where the interconnect names none that we know.
std::string link_named(std::string_view gpu, std::string_view interconnect, int n) {
  if (mentions(interconnect, "pair")) {  // a bridge joins two devices, PCIe the pairs
    if (n > 2) return mentions(gpu, "A100") ? "pcie4" : "pcie5";
    return mentions(gpu, "A100") ? "nvlink3" : "nvlink4";
  }
  for (const char* generation : {"3", "4", "5"}) {
    if (mentions(interconnect, std::string("NVLink") + generation)) {
      return std::string("nvlink") + generation;
    }
    if (mentions(interconnect, std::string("PCIe ") + generation)) {
      return std::string("pcie") + generation;
    }
  }
  return "";
}

/// A bridge of 12 NVLinks, 25 GB/s each: NVIDIA H100 PCIe product brief, "NVLink bridge", 600 GB/s
/// both ways.
constexpr double kBridgeGBps = 300;

void read_group(const CsvTable& table, CollectiveRow& row) {
  const std::string_view interconnect = table.cell(row.table_row, "interconnect");
  const std::string_view notes = table.cell(row.table_row, "notes");
  static const std::regex kPerNode(R"(devices_per_node=(\d+))");
  const int n = row.group.num_ranks;
  row.link = link_named(row.device, interconnect, n);
  if (row.link.empty()) {
    row.skipped = "no constants for the link of \"" + std::string(interconnect) + "\"";
    return;
  }
  if (mentions(interconnect, "pair") && row.link == "nvlink4") {
    row.group.line_rate_GBps = kBridgeGBps;
  }
  const int per_node = captured_count(notes, kPerNode);
  const int nodes = std::max(nodes_named(interconnect), per_node > 0 ? n / per_node : 1);
  if (n % nodes != 0) {
    row.skipped = "ngpus is no multiple of the nodes";
    return;
  }
  row.group.ranks_per_node = n / nodes;
  row.group.nvls = !mentions(interconnect, "NVLS_ENABLE=0") && !mentions(interconnect, "Ring");
  if (nodes == 1) return;
  row.network = network_named(interconnect);
  row.group.nic_GBps = nic_rate_named(interconnect, row.group.ranks_per_node);
  if (row.network.empty()) {
    row.network = row.link == "nvlink3" ? "ib_hdr" : "ib_ndr";
    row.marked = row.relabelled = true;
  }
}

CollectiveRow read_row(const CsvTable& table, size_t i) {
  CollectiveRow row{.table_row = i};
  row.device = table.cell(i, "gpu");
  row.source = source_project(table.cell(i, "source"));
  if (table.is_broken(i)) {
    row.skipped = "cells do not match the header";
    return row;
  }
  const std::string_view op = table.cell(i, "op");
  const auto named = std::find_if(
      kNamedOps.begin(), kNamedOps.end(), [&](const NamedOp& k) { return k.name == op; });
  if (named == kNamedOps.end()) {
    row.skipped = "unknown op \"" + std::string(op) + "\"";
    return row;
  }
  row.op = named->op;
  const std::optional<double> n = table.number(i, "ngpus");
  const std::optional<double> bytes = table.number(i, "bytes");
  if (!n || *n < 2 || *n > 1e6 || *n != std::floor(*n)) {
    row.skipped = "ngpus must be a whole number of at least 2";
    return row;
  }
  if (!bytes || *bytes < 0) {
    row.skipped = "no bytes";
    return row;
  }
  row.group.num_ranks = static_cast<int>(*n);
  row.bytes = *bytes;
  read_group(table, row);
  const std::optional<double> time = table.number(i, "time_us");
  if (time && *time > 0) row.time_us = *time;
  const std::string_view notes = table.cell(i, "notes");
  const std::string_view source = table.cell(i, "source");
  const bool nccl_tests = mentions(notes, "nccl-tests") || mentions(notes, "out-of-place");
  const bool host_timed =
      !nccl_tests || mentions(source, "-g 8") || mentions(notes, "one thread launches");
  // No working peer-to-peer: 20 GB/s at 2 devices, 1.45 at 8. And a log whose note says that its
  // middle sizes are disturbed.
  row.marked = row.marked || mentions(row.device, "L40S") || mentions(notes, "use with care") ||
               (host_timed && row.bytes < kHostBoundBytes);
  // Of known NCCL version: protocols below a few MiB change between versions.
  row.kernel_timed = notes.starts_with("nccl-tests") && !mentions(notes, "one thread launches") &&
                     (mentions(source, "/nccl/") || mentions(notes, "log"));
  if (row.marked) row.source += " (marked)";
  return row;
}

}  // namespace

std::string source_project(std::string_view source) {
  const size_t blank = source.find(' ');
  const std::string_view path = source.substr(0, blank);
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) {
    return std::string(source.substr(0, std::min(source.size(), source.find(" ("))));
  }
  std::string_view name = path.substr(slash + 1);
  return std::string(name.substr(0, std::min(name.size(), name.find_first_of("@:/"))));
}

std::vector<CollectiveRow> collective_rows(const CsvTable& table) {
  std::vector<CollectiveRow> rows;
  for (size_t i = 0; i < table.num_rows(); ++i) rows.push_back(read_row(table, i));
  return rows;
}

}  // namespace meshwright
