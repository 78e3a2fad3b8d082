// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/nccl_tests_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/fit/collective_rows.h"
#include "sim/validate/validation.h"
#include "tests/unit/sim/temporary_file.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFile;

/// The form of nccl-tests 2.17; times of NVIDIA/nccl-tests issue threads are not needed here.
constexpr const char* kLog =
    R"(# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1946 on    node-a device  0 [0000:0f:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   1947 on    node-a device  1 [0000:15:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           256     float     sum      -1     6.01    0.17    0.17      0     5.98    0.17    0.17      0
node-a:1946:1946 [0] NCCL INFO a line that someone's NCCL_DEBUG left here
   536870912     134217728     float     sum      -1   1703.9  315.08  315.08      0   1710.2  313.92  313.92      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 157.6
#
# Collective test concluded: all_reduce_perf
)";

TEST(NcclTestsLog, SizeAndOutOfPlaceTimeOfEachRow) {
  ASSERT_TRUE(is_nccl_tests_output(kLog));
  const CsvTable t = parse_nccl_tests_output(kLog, "run.log").value();
  ASSERT_EQ(t.num_rows(), 2u);
  EXPECT_EQ(t.cell(0, "op"), "all_reduce");
  EXPECT_EQ(t.cell(0, "gpu"), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(t.cell(0, "interconnect"), "NVLink4");
  EXPECT_EQ(t.number(0, "ngpus"), 2);
  EXPECT_EQ(t.number(0, "bytes"), 1024);
  EXPECT_EQ(t.number(0, "time_us"), 6.01);
  EXPECT_EQ(t.number(1, "time_us"), 1703.9);
  EXPECT_EQ(t.line(0), 12);  // of the log
  EXPECT_EQ(t.line(1), 14);
  EXPECT_FALSE(t.has_column("busbw"));
}

TEST(NcclTestsLog, RowsAreTimedAsKernelsOnALinkOfTheDevice) {
  const std::vector<CollectiveRow> rows =
      collective_rows(parse_nccl_tests_output(kLog, "run.log").value());
  EXPECT_EQ(rows[0].link, "nvlink4");
  EXPECT_TRUE(rows[0].kernel_timed);
  EXPECT_FALSE(rows[0].marked);
  EXPECT_EQ(rows[0].skipped, "");
}

TEST(NcclTestsLog, HostsAreNodesAndRunsFollowEachOther) {
  std::string log = kLog;
  log +=
      R"(# Collective test starting: alltoall_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)
#  Rank  0 Group  0 Pid   1 on node-a device  0 [0000:0f:00] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid   2 on node-b device  0 [0000:0f:00] NVIDIA A100-SXM4-80GB
#                                                      out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
        2048           256     float    none      -1    12.50    0.16    0.08      0    12.40    0.17    0.08    N/A
)";
  const CsvTable t = parse_nccl_tests_output(log, "run.log").value();
  ASSERT_EQ(t.num_rows(), 3u);
  EXPECT_EQ(t.cell(2, "op"), "alltoall");
  EXPECT_EQ(t.number(2, "time_us"), 12.5);
  const CollectiveRow r = collective_rows(t)[2];
  EXPECT_EQ(r.link, "nvlink3");
  EXPECT_EQ(r.group.num_ranks, 2);
  EXPECT_EQ(r.group.ranks_per_node, 1);
  EXPECT_FALSE(r.network.empty());
}

TEST(NcclTestsLog, HeaderWithoutWrongColumnAndOldRankLines) {
  // nccl-tests before 2.12: no group, "error" instead of #wrong, root left out for all-gather.
  const CsvTable t = parse_nccl_tests_output(
                         R"($ ./build/all_gather_perf -b 8 -e 128M -f 2 -g 2
# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
# Using devices
#   Rank  0 Pid  3301 on  node-a device  0 [0x07] A100-SXM4-40GB
#   Rank  1 Pid  3301 on  node-a device  1 [0x0f] A100-SXM4-40GB
#                                              out-of-place                       in-place
#       size         count      type     time   algbw   busbw  error     time   algbw   busbw  error
     1048576        131072     float    25.34   41.38   20.69  0e+00    24.90   42.11   21.06  0e+00
)",
                         "old.log")
                         .value();
  ASSERT_EQ(t.num_rows(), 1u);
  EXPECT_EQ(t.number(0, "time_us"), 25.34);
  EXPECT_EQ(t.cell(0, "op"), "all_gather");
  const CollectiveRow r = collective_rows(t)[0];
  EXPECT_FALSE(r.kernel_timed);  // one thread launches both devices
  EXPECT_TRUE(r.marked);         // and the message is small
}

TEST(NcclTestsLog, Json) {
  // The document of nccl-tests' --json (src/util.cu): one device entry per process.
  const std::string json = R"({"version": 2, "args": ["./build/reduce_scatter_perf", "-J", "x"],
    "config": {"nthreads": 1, "ngpus": 1, "devices": [
      {"rank": 0, "hostname": "a", "device": 0, "device_info": "NVIDIA B200"},
      {"rank": 1, "hostname": "a", "device": 1, "device_info": "NVIDIA B200"}]},
    "results": [
      {"size": 1024, "count": 128, "type": "float", "redop": "sum", "root": "-1",
       "out_of_place": {"time": 8.910000, "alg_bw": 0.1, "bus_bw": 0.05, "nwrong": 0.0},
       "in_place": {"time": 8.8, "alg_bw": 0.1, "bus_bw": 0.05, "nwrong": 0.0}},
      {"size": 2048, "count": 256, "type": "float", "redop": "sum", "root": "-1",
       "out_of_place": null}]})";
  ASSERT_TRUE(is_nccl_tests_output(json));
  const CsvTable t = parse_nccl_tests_output(json, "run.json").value();
  ASSERT_EQ(t.num_rows(), 1u);
  EXPECT_EQ(t.cell(0, "op"), "reduce_scatter");
  EXPECT_EQ(t.number(0, "ngpus"), 2);
  EXPECT_EQ(t.number(0, "time_us"), 8.91);
  EXPECT_EQ(t.cell(0, "interconnect"), "NVLink5");
}

TEST(NcclTestsLog, WhatTheTextDoesNotTellIsAskedFor) {
  const auto message = [](std::string log, const std::string& from, const std::string& to) {
    for (size_t at = log.find(from); at != std::string::npos; at = log.find(from)) {
      log.replace(at, from.size(), to);
    }
    return to_string(parse_nccl_tests_output(log, "run.log").error());
  };
  EXPECT_THAT(message(kLog, "all_reduce_perf", "a program"), HasSubstr("operation"));
  EXPECT_THAT(message(kLog, "NVIDIA H100 80GB HBM3", "An Abacus"), HasSubstr("An Abacus"));
  EXPECT_THAT(message(kLog, "#  Rank ", "#  "), HasSubstr("at least 2"));
  const std::string log = kLog;
  EXPECT_THAT(message(log.substr(0, log.find("        1024")), "#?", ""),
              HasSubstr("no result row"));
}

TEST(NcclTestsLog, ValidateReadsALogLikeATable) {
  const TemporaryFile file(kLog);
  const ValidationReport report = validate_files({file.path()}).value();
  EXPECT_EQ(report.family, "collectives");
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.rows[1].line, 14);
  EXPECT_LT(std::abs(*report.rows[1].rel_err()), 0.12);  // figures of an H200 pair
}

}  // namespace
}  // namespace meshwright
