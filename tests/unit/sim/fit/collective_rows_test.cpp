// SPDX-License-Identifier: Apache-2.0
#include "sim/fit/collective_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshwright {
namespace {

using ::testing::HasSubstr;

CollectiveRow row(const std::string& cells) {
  const std::string text =
      "gpu,interconnect,ngpus,op,bytes,time_us,algbw,busbw,source,notes\n" + cells + "\n";
  return collective_rows(CsvTable::parse(text, "test").value()).at(0);
}

TEST(CollectiveRows, LinkGroupAndProject) {
  const CollectiveRow r =
      row("NVIDIA B200,NVLink5/NVSwitch intra-node,8,all_gather,1024,16.2,,,"
          "ai-dynamo/aiconfigurator@095f58a5 systems/data/b200_sxm/comm/nccl/2.29.2/x.parquet,"
          "nccl-tests out-of-place");
  EXPECT_EQ(r.skipped, "");
  EXPECT_EQ(r.source, "aiconfigurator");
  EXPECT_EQ(r.link, "nvlink5");
  EXPECT_EQ(r.network, "");
  EXPECT_EQ(r.op, CommOp::kAllGather);
  EXPECT_EQ(r.group.num_ranks, 8);
  EXPECT_EQ(r.group.ranks_per_node, 8);
  EXPECT_TRUE(r.kernel_timed);
  EXPECT_FALSE(r.marked);
}

TEST(CollectiveRows, NodesNetworkAndNicOfTheLabel) {
  const CollectiveRow efa =
      row("H100,\"2x AWS p5.48xlarge, NVLink4 + 3200Gbps EFA\",16,all_reduce,1024,69,,,s,"
          "\"out-of-place columns, printed\"");
  EXPECT_EQ(efa.network, "efa");
  EXPECT_EQ(efa.group.ranks_per_node, 8);
  EXPECT_DOUBLE_EQ(efa.group.nic_GBps, 50);
  EXPECT_FALSE(efa.marked);
  const CollectiveRow tcpxo =
      row("H100,\"2x GCP a3-megagpu-8g, NVLink4 + 8x200Gbps TCPXO\",16,all_reduce,1024,69,,,s,"
          "out-of-place");
  EXPECT_DOUBLE_EQ(tcpxo.group.nic_GBps, 25);
}

TEST(CollectiveRows, RowsThatCrossNodesAgainstTheirLabelAreMarked) {
  const CollectiveRow r = row(
      "A100-SXM (DGX),NVLink3/NVSwitch,2,all_reduce,67108864,11439,,,microsoft/vidur@7d475133 data,"
      "devices_per_node=1; profiler");
  EXPECT_EQ(r.group.ranks_per_node, 1);
  EXPECT_EQ(r.network, "ib_hdr");
  EXPECT_TRUE(r.marked);
  EXPECT_EQ(r.source, "vidur (marked)");
}

TEST(CollectiveRows, HostTimedRowsCountFromFourMebibytesOn) {
  const std::string head = "H200-SXM,NVLink4/NVSwitch,8,all_reduce,";
  const std::string tail = ",100,,,stas00/ml-engineering@744d01e1 network/README.md,printed";
  EXPECT_TRUE(row(head + "4194303" + tail).marked);
  EXPECT_FALSE(row(head + "4194304" + tail).marked);
}

TEST(CollectiveRows, PairsOfNvlinkAreJoinedByPcie) {
  const std::string a100 = "A100 (pairwise NVLink),NVLink pairs + PCIe,";
  const std::string tail = ",all_reduce,67108864,384,,,s,out-of-place";
  EXPECT_EQ(row(a100 + "2" + tail).link, "nvlink3");
  EXPECT_EQ(row(a100 + "4" + tail).link, "pcie4");
}

TEST(CollectiveRows, DisabledNvls) {
  EXPECT_FALSE(row("H200,NVLink4/NVSwitch NCCL_NVLS_ENABLE=0,8,all_reduce,1,1,,,s,").group.nvls);
  EXPECT_TRUE(row("H200,NVLink4/NVSwitch default,8,all_reduce,1,1,,,s,").group.nvls);
}

TEST(CollectiveRows, UnusableRowsSayWhy) {
  EXPECT_THAT(row("V100,NVLink2,2,all_reduce,1024,1,,,s,").skipped, HasSubstr("NVLink2"));
  EXPECT_THAT(row("H100,NVLink4,2,broadcast,1024,1,,,s,").skipped, HasSubstr("broadcast"));
  EXPECT_THAT(row("H100,NVLink4,1,all_reduce,1024,1,,,s,").skipped, HasSubstr("ngpus"));
  EXPECT_THAT(row("H100,NVLink4,2.5,all_reduce,1024,1,,,s,").skipped, HasSubstr("ngpus"));
  EXPECT_THAT(row("H100,NVLink4,2,all_reduce,,1,,,s,").skipped, HasSubstr("bytes"));
  EXPECT_THAT(row("H100,NVLink4,2").skipped, HasSubstr("header"));
  EXPECT_THAT(row("H100,\"3 nodes, NVLink4\",16,all_reduce,1,1,,,s,").skipped,
              HasSubstr("multiple"));
}

TEST(CollectiveRows, ProjectOfASource) {
  EXPECT_EQ(source_project("li-plus/playground:cuda/nccl.md (sendrecv_perf)"), "playground");
  EXPECT_EQ(source_project("NVIDIA/nccl-tests issue 194"), "nccl-tests");
  EXPECT_EQ(source_project("public repo stored text (OCI B300)"), "public repo stored text");
  EXPECT_EQ(source_project(""), "");
}

}  // namespace
}  // namespace meshwright
