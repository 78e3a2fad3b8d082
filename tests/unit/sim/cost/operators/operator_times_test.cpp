// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/operators/operator_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/validate/operator_family.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

TEST(OperatorTimes, AgreesWithValidate) {
  const OperatorTimes h100(*find_builtin_gpu("h100"));
  const auto gemm = predict_gemm(
      CsvTable::parse("gpu,dtype,m,n,k,latency_ms\nh100,fp8,4096,8192,8192,1\n", "t").value());
  EXPECT_DOUBLE_EQ(h100.gemm(GemmKind::kFp8, {4096, 8192, 8192})->v * 1e3, *gemm[0].predicted);
  const auto attention = predict_attention(
      CsvTable::parse("gpu,batch_size,isl,num_heads,num_key_value_heads,head_dim,step,latency_ms\n"
                      "h100,4,2048,32,8,128,0,1\nh100,4,1,32,8,128,2047,1\n",
                      "t")
          .value());
  EXPECT_DOUBLE_EQ(h100.attention({4, 2048, 0, 32, 8, 128})->v * 1e3, *attention[0].predicted);
  EXPECT_DOUBLE_EQ(h100.attention({4, 1, 2047, 32, 8, 128})->v * 1e3, *attention[1].predicted);
}

TEST(OperatorTimes, SaysWhoseConstantsItUses) {
  EXPECT_THAT(OperatorTimes(*find_builtin_gpu("h100")).provenance(), HasSubstr("gemm bf16: h100;"));
  EXPECT_THAT(OperatorTimes(*find_builtin_gpu("gb300")).provenance(),
              HasSubstr("attention decode: gb200 (data sheet of gb300)"));
  const OperatorTimes v100(*find_builtin_gpu("v100"));
  EXPECT_EQ(v100.provenance(), "");
  EXPECT_FALSE(v100.gemm(GemmKind::kBf16, {64, 64, 64}).has_value());
  EXPECT_FALSE(v100.attention({}).has_value());
  EXPECT_FALSE(v100.attention({1, 64, 0, 8, 8, 64}).has_value());
  EXPECT_FALSE(
      OperatorTimes(*find_builtin_gpu("a100-80g")).gemm(GemmKind::kFp8, {64, 64, 64}).has_value());
}

}  // namespace
}  // namespace meshwright
