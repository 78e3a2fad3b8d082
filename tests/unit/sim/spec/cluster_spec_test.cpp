// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/plans.h"
#include "tests/unit/sim/temporary_file.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using testing::machine;
using ::testing::StartsWith;
using testing::TemporaryFile;

Error error_of(const std::string& cluster) {
  const auto c = load_cluster(cluster, machine());
  EXPECT_FALSE(c.has_value()) << cluster;
  return c ? Error{} : c.error();
}

/// A cluster document with these members besides its name and count.
std::string document(const std::string& members) {
  return R"({"schema_version": 1, "name": "lab", "num_devices": 12, )" + members + "}";
}

TEST(ClusterSpec, CountTimesDevice) {
  const ClusterSpec c = load_cluster("64xa100-80g", machine()).value();
  EXPECT_EQ(c.num_devices, 64);
  EXPECT_EQ(c.devices_per_node, 8);
  EXPECT_EQ(c.num_nodes(), 8);
  EXPECT_EQ(c.device.peak_bf16.v, 312e12);     // NVIDIA's data sheet, dense
  EXPECT_EQ(c.intra_node.bandwidth.v, 300e9);  // NVLink 3, one direction
  EXPECT_FALSE(c.is_local());
  EXPECT_EQ(c.shared_cores, std::nullopt);
  EXPECT_EQ(load_cluster("12xh100", machine()).value().num_nodes(), 2);  // the last one partial
}

TEST(ClusterSpec, LocalRanksShareMemoryAndCores) {
  const ClusterSpec c = load_cluster("4xlocal", machine()).value();
  EXPECT_TRUE(c.is_local());
  EXPECT_EQ(c.num_nodes(), 1);
  EXPECT_EQ(c.shared_cores, 2);
  EXPECT_EQ(c.device.memory.v, 8e9 / 4);
}

TEST(ClusterSpec, BadCountsNameTheRange) {
  for (const char* text : {"0xa100-80g",
                           "-1xa100-80g",
                           "1000001xa100-80g",
                           "fourxa100-80g",
                           "4.5xa100-80g",
                           "xa100-80g",
                           "a100-80g",
                           "99999999999999999999xa100-80g"}) {
    const Error e = error_of(text);
    EXPECT_EQ(e.where, "--cluster");
    EXPECT_EQ(e.field, "num_devices") << text;
    EXPECT_EQ(e.rule, "must be a whole number from 1 to 1000000") << text;
    EXPECT_EQ(e.remedy, "write for example 8xa100-80g") << text;
  }
}

TEST(ClusterSpec, UnknownDeviceSuggestsTheNearestOrListsAll) {
  EXPECT_EQ(error_of("64xa100-80").remedy, "did you mean a100-80g?");
  EXPECT_EQ(error_of("64xa100").remedy,
            "did you mean a100-80g?");  // an alias of it; not h100, which is one letter away
  EXPECT_EQ(error_of("8xh1000").remedy, "did you mean h100?");
  EXPECT_EQ(error_of("8xsupercomputer").remedy,
            "devices: a100-40g, a100-80g, b200, b300, gb200, gb300, h100-96g, h100, h200, l40s, "
            "local, rtx-pro-6000, v100");
  EXPECT_EQ(error_of("x").remedy, error_of("8xsupercomputer").remedy);
}

TEST(ClusterSpec, OwnDocumentOverBuiltInDevice) {
  const TemporaryFile file(document(
      R"("device": "h100", "devices_per_node": 4, "price_usd_per_device_hour": 2.5,
         "inter_node": {"bandwidth_GBps": 12.5, "alpha_us": 10})"));
  const ClusterSpec c = load_cluster(file.path(), machine()).value();
  EXPECT_EQ(c.name, "lab");
  EXPECT_EQ(c.num_nodes(), 3);
  EXPECT_EQ(c.inter_node.bandwidth.v, 12.5e9);
  EXPECT_DOUBLE_EQ(c.inter_node.alpha.v, 10e-6);
  EXPECT_EQ(c.price_usd_per_device_hour, 2.5);
  EXPECT_EQ(c.device, load_cluster("8xh100", machine()).value().device);
}

TEST(ClusterSpec, QuantityWithoutUnitNamesTheKeyThatHasOne) {
  const TemporaryFile file(
      document(R"("device": "h100", "inter_node": {"bandwidth": 300, "alpha_us": 10})"));
  const Error e = error_of(file.path());
  EXPECT_EQ(e.where, file.path() + "#/inter_node/bandwidth");
  EXPECT_EQ(e.value, "300");
  EXPECT_EQ(e.rule, "is a quantity without a unit");
  EXPECT_EQ(e.remedy, "write \"bandwidth_GBps\"");
}

TEST(ClusterSpec, OptionalQuantityWithoutUnitIsNamedToo) {
  const TemporaryFile file(document(
      R"("device": "h100", "inter_node": {"bandwidth_GBps": 300, "alpha_us": 10, "base": 8})"));
  EXPECT_EQ(error_of(file.path()).remedy, "write \"base_us\"");
}

TEST(ClusterSpec, UnknownKeySuggestsTheNearest) {
  const TemporaryFile file(document(R"("device": "h100", "device_per_node": 4)"));
  const Error e = error_of(file.path());
  EXPECT_EQ(e.where, file.path() + "#/device_per_node");
  EXPECT_EQ(e.rule, "is not a known key");
  EXPECT_EQ(e.remedy, "did you mean \"devices_per_node\"?");
}

TEST(ClusterSpec, OwnDocumentErrors) {
  const auto message = [](const std::string& text) {
    const TemporaryFile file(text);
    return to_string(error_of(file.path())).substr(file.path().size());
  };
  EXPECT_THAT(message(document(R"("device": "h1000")")), HasSubstr("is not a built-in device"));
  EXPECT_EQ(message(document("")).substr(0, 9), ": line 1,");  // a comma too many
  EXPECT_EQ(message(R"({"schema_version": 2, "name": "lab", "num_devices": 8, "device": "h100"})"),
            "#/schema_version: schema_version = 2: must be from 1 to 1");
  EXPECT_EQ(message(R"({"schema_version": 1, "name": "lab", "num_devices": 0, "device": "h100"})"),
            "#/num_devices: num_devices = 0: must be from 1 to 1e+06");
  EXPECT_THAT(message(R"({"schema_version": 1, "name": 7, "num_devices": 8, "device": "h100"})"),
              HasSubstr("name = 7: must be a string"));
  EXPECT_THAT(message(document(R"("device": "h100", "intra_node": {"bandwidth_GBps": 0,
                                  "alpha_us": 1})")),
              HasSubstr("bandwidth_GBps = 0: must be from"));
  EXPECT_THAT(message(R"([])"), HasSubstr("must be a JSON object"));
}

TEST(ClusterSpec, GenerationOfALink) {
  const TemporaryFile file(document(
      R"("device": "a100-80g", "intra_node": {"bandwidth_GBps": 450, "generation": "nvlink4"})"));
  const ClusterSpec c = load_cluster(file.path(), machine()).value();
  EXPECT_EQ(c.intra_node.generation, "nvlink4");
  EXPECT_EQ(c.intra_node.efficiency, 1);
  const TemporaryFile unknown(document(
      R"("device": "h100", "intra_node": {"bandwidth_GBps": 450, "generation": "nvlink9"})"));
  EXPECT_EQ(error_of(unknown.path()).rule, "has no constants");
  // A network is no link inside a node.
  const TemporaryFile network(document(
      R"("device": "h100", "intra_node": {"bandwidth_GBps": 50, "generation": "ib_ndr"})"));
  EXPECT_THAT(error_of(network.path()).remedy, HasSubstr("nvlink4"));
}

TEST(ClusterSpec, MissingFileAndFolder) {
  EXPECT_THAT(error_of("no/such/cluster.json").rule, HasSubstr("nor a path that exists"));
  EXPECT_EQ(error_of(::testing::TempDir()).rule, "is a directory, not a file");
}

TEST(ClusterSpec, EveryBuiltInDeviceCanBeRead) {
  for (const std::string& device : builtin_devices()) {
    const auto c = load_cluster("8x" + device, machine());
    ASSERT_TRUE(c.has_value()) << to_string(c.error());
    EXPECT_GT(c->capacity().v, 0) << device;
    EXPECT_EQ(c->device.name, device);
  }
}

TEST(ClusterSpec, BuiltInGpusAreFoundByTheNamesOfPublishedTables) {
  ASSERT_NE(find_builtin_gpu("h100_sxm"), nullptr);
  EXPECT_EQ(find_builtin_gpu("h100_sxm")->name, "h100");
  EXPECT_EQ(find_builtin_gpu("a100-80g")->l2_cache.v, 40e6);
  EXPECT_EQ(find_builtin_gpu("rtx_pro_6000_server")->architecture, "blackwell_rtx");
  EXPECT_EQ(find_builtin_gpu("local"), nullptr);  // a CPU
  EXPECT_EQ(find_builtin_gpu("h100_xyz"), nullptr);
}

}  // namespace
}  // namespace meshwright
