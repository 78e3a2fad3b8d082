// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/validate/validation.h"
#include "tests/unit/sim/temporary_file.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFile;

/// ai-dynamo/aiconfigurator@095f58a5 systems/data (nccl-tests, NCCL 2.29.2), one row of vTrain's
/// NVLink2 and one without a time.
constexpr const char* kTable =
    R"(gpu,interconnect,ngpus,op,bytes,time_us,algbw,busbw,source,notes
NVIDIA H200,NVLink4/NVSwitch intra-node,2,all_reduce,67108864,248.32,,,ai-dynamo/aiconfigurator@095f58a5 systems,nccl-tests out-of-place
NVIDIA B200,NVLink5/NVSwitch intra-node,8,all_gather,131072,18.71,,,ai-dynamo/aiconfigurator@095f58a5 systems,nccl-tests out-of-place
V100 (vTrain),NVLink2,2,all_reduce,1048576,70.14,,,VIA-Research/vTrain@f8dda847 trace,nccl-tests
NVIDIA B200,NVLink5/NVSwitch intra-node,8,all_gather,131072,,,,s,
)";

TEST(CollectivesFamily, RowsOfATable) {
  const TemporaryFile file(kTable);
  const ValidationReport report = validate_files({file.path()}).value();
  EXPECT_EQ(report.family, "collectives");
  ASSERT_EQ(report.rows.size(), 4u);
  const ValidatedRow& r = report.rows[0];
  EXPECT_TRUE(r.compared());
  EXPECT_EQ(r.line, 2);
  EXPECT_EQ(r.source, "aiconfigurator");
  EXPECT_EQ(r.device, "NVIDIA H200");
  EXPECT_EQ(r.unit, "us");
  EXPECT_THAT(r.id, HasSubstr("all_reduce n=2"));
  EXPECT_LT(std::abs(*r.rel_err()), 0.05);
  EXPECT_LT(*r.bound_low, *r.predicted);
  EXPECT_GT(*r.bound_high, *r.predicted);
  EXPECT_THAT(report.rows[2].skipped, HasSubstr("NVLink2"));
  EXPECT_TRUE(report.rows[3].predicted.has_value());
  EXPECT_THAT(report.rows[3].skipped, HasSubstr("time_us"));
}

}  // namespace
}  // namespace meshwright
