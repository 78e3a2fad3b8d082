// SPDX-License-Identifier: Apache-2.0
// A few measured times of every device, as a guard of the constants and of what reads them.
//
// Rows of ai-dynamo/aiconfigurator@095f58a5 (systems data), four per set, drawn by the hash of
// their key, marked sets left out. The bars are those of the whole families, widened by what a
// sample of sixty can miss them: 1.3 for the median and 1.5 for the 90 % quantile.
#include <gtest/gtest.h>

#include "sim/validate/operator_family.h"

namespace meshwright {
namespace {

constexpr double kMedianOfSample = 1.3, kP90OfSample = 1.5;

constexpr const char* kGemmRows = R"(gpu,dtype,m,n,k,latency_ms
a100_sxm,bfloat16,8,768,4096,0.0125769
a100_sxm,bfloat16,4,4096,7168,0.0395653
a100_sxm,bfloat16,8192,12288,5120,3.61704
a100_sxm,bfloat16,96,4096,64,0.00424978
b200_sxm,bfloat16,11,8192,256,0.00252889
b200_sxm,bfloat16,768,5120,32,0.00457333
b200_sxm,bfloat16,192,256,1536,0.00385156
b200_sxm,bfloat16,112,8192,64,0.00281956
gb200,bfloat16,1793,1536,64,0.00319022
gb200,bfloat16,128,2048,4096,0.00792089
gb200,bfloat16,1280,16384,3584,0.0884756
gb200,bfloat16,4096,3584,10240,0.162172
h100_sxm,bfloat16,7,6144,6144,0.0281627
h100_sxm,bfloat16,32768,1024,3072,0.261119
h100_sxm,bfloat16,2304,7168,1024,0.0497218
h100_sxm,bfloat16,128,1024,65536,0.0568178
h200_sxm,bfloat16,3073,7168,1024,0.0636036
h200_sxm,bfloat16,16,10240,12288,0.0670667
h200_sxm,bfloat16,11,10240,3584,0.0209716
h200_sxm,bfloat16,32,256,3584,0.006336
l40s,bfloat16,513,3072,128,0.00600178
l40s,bfloat16,80,32,8192,0.00534756
l40s,bfloat16,2817,4096,1536,0.17078
l40s,bfloat16,160,128,6144,0.00784889
rtx_pro_6000_server,bfloat16,14,1024,5120,0.00728356
rtx_pro_6000_server,bfloat16,128,768,128,0.00245422
rtx_pro_6000_server,bfloat16,1024,51200,3072,0.804956
rtx_pro_6000_server,bfloat16,3328,64,32,0.00252533
b200_sxm,fp8,128,768,10240,0.0141502
b200_sxm,fp8,3073,768,4096,0.0445938
b200_sxm,fp8,160,3072,1536,0.00794222
b200_sxm,fp8,10,3584,2560,0.00707378
gb200,fp8,10,32,2560,0.00733511
gb200,fp8,1537,6144,10240,0.0998916
gb200,fp8,128,5120,16384,0.027608
gb200,fp8,2305,6144,12288,0.164284
h100_sxm,fp8,15,64,6144,0.00906578
h100_sxm,fp8,1025,65536,12288,1.87499
h100_sxm,fp8,4097,8192,32,0.0650169
h100_sxm,fp8,2561,65536,5120,1.72313
h200_sxm,fp8,193,2048,768,0.00974844
h200_sxm,fp8,224,5120,16384,0.0543724
h200_sxm,fp8,1,512,512,0.00497333
h200_sxm,fp8,1536,128,8192,0.0559653
l40s,fp8,96,16384,4096,0.148935
l40s,fp8,129,12288,32,0.0230116
l40s,fp8,3329,10240,65536,13.0237
l40s,fp8,7,16384,2560,0.0743822
rtx_pro_6000_server,fp8,8192,512,768,0.048704
rtx_pro_6000_server,fp8,1793,4096,256,0.0199244
rtx_pro_6000_server,fp8,5,1024,65536,0.0898933
rtx_pro_6000_server,fp8,512,12288,2560,0.0639813
a100_sxm,int8_wo,192,128,1536,0.016384
a100_sxm,int8_wo,8192,128,3584,0.058368
a100_sxm,int8_wo,160,7168,65536,1.10797
a100_sxm,int8_wo,384,2560,10240,0.124928
h200_sxm,int8_wo,160,8192,512,0.013408
h200_sxm,int8_wo,16,6144,768,0.0144
h200_sxm,int8_wo,768,6144,6144,0.099968
h200_sxm,int8_wo,768,5120,5120,0.059328
l40s,int8_wo,160,128,512,0.006144
l40s,int8_wo,2048,10240,7168,1.29843
l40s,int8_wo,768,3584,10240,0.251904
l40s,int8_wo,8192,256,12288,0.3584
)";

constexpr const char* kAttentionRows =
    R"(gpu,batch_size,isl,num_heads,num_key_value_heads,head_dim,step,latency_ms
rtx_pro_6000_server,2,3072,48,1,128,0,0.879707
rtx_pro_6000_server,8,1536,24,2,64,0,0.318171
rtx_pro_6000_server,64,1024,48,4,128,0,4.04401
rtx_pro_6000_server,2,1024,48,48,128,0,0.210869
l40s,256,64,24,4,128,0,0.457216
l40s,128,16,24,2,128,0,0.091648
l40s,4,64,48,8,64,0,0.0145067
l40s,4,10240,16,1,256,0,19.2403
h200_sxm,2,512,16,16,64,0,0.0228853
h200_sxm,16,64,8,1,64,0,0.0146187
h200_sxm,8,1536,20,4,128,0,0.287669
h200_sxm,1,32,24,8,128,0,0.0138773
h100_sxm,128,64,1,1,256,0,0.0288693
h100_sxm,4,256,48,48,128,0,0.0547787
h100_sxm,8,6144,2,1,512,0,1.88032
h100_sxm,1,1536,1,1,256,0,0.02584
gb200,1,32,8,1,256,0,0.011168
gb200,64,2048,16,2,128,0,1.15881
gb200,32,4096,3,1,256,0,0.764992
gb200,128,1,16,2,512,0,0.0174773
b200_sxm,32,16,8,1,64,0,0.015008
b200_sxm,16,1536,64,2,64,0,0.564133
b200_sxm,32,3072,16,8,64,0,1.2623
b200_sxm,2,1536,40,1,64,0,0.0663573
a100_sxm,2,10240,48,1,128,0,14.4732
a100_sxm,128,16,2,1,128,0,0.0221813
a100_sxm,32,32,40,8,128,0,0.0628213
a100_sxm,2,1536,24,8,128,0,0.249173
rtx_pro_6000_server,8,1,4,2,64,127,0.0139307
rtx_pro_6000_server,4,1,40,8,64,63,0.0146773
rtx_pro_6000_server,4,1,32,1,128,2047,0.0169547
rtx_pro_6000_server,32,1,12,1,128,511,0.0137227
l40s,128,1,6,1,256,8191,1.45289
l40s,16,1,48,4,64,63,0.0134613
l40s,256,1,24,4,64,3,0.0438613
l40s,4,1,48,1,128,1,0.00904533
h200_sxm,32,1,2,1,256,65535,0.499515
h200_sxm,32,1,8,4,128,511,0.01656
h200_sxm,2,1,16,4,64,1,0.0101387
h200_sxm,8,1,16,1,256,8191,0.031616
h100_sxm,1,1,24,1,128,16383,0.0182667
h100_sxm,64,1,32,2,128,511,0.0177333
h100_sxm,4,1,64,4,64,1,0.0105173
h100_sxm,128,1,24,2,64,15,0.015712
gb200,16,1,12,2,256,3,0.010784
gb200,16,1,64,4,64,31,0.0109813
gb200,2,1,6,1,128,3,0.00885333
gb200,256,1,8,4,64,4095,0.15352
b200_sxm,256,1,12,4,64,1,0.0172693
b200_sxm,128,1,24,2,64,15,0.010976
b200_sxm,16,1,2,1,512,4095,0.033168
b200_sxm,2,1,8,1,64,511,0.00913067
a100_sxm,1024,1,64,2,128,63,0.178997
a100_sxm,4,1,12,4,128,4095,0.043136
a100_sxm,256,1,8,2,128,3,0.034272
a100_sxm,32,1,40,1,128,3,0.013296
)";

ValidationSummary pooled(std::vector<ValidatedRow> rows) {
  ValidationReport report{.rows = std::move(rows)};
  for (const ValidatedRow& row : report.rows) EXPECT_EQ(row.skipped, "") << row.id;
  summarise(report);
  return report.summary.back();
}

TEST(MeasuredRows, Matmul) {
  const ValidationSummary s = pooled(predict_gemm(CsvTable::parse(kGemmRows, "rows").value()));
  EXPECT_EQ(s.count, 64);
  EXPECT_LT(s.median, kMedianOfSample * 0.07);
  EXPECT_LT(s.p90, kP90OfSample * 0.23);
  EXPECT_LT(std::abs(s.bias), 0.05);
  EXPECT_GT(s.rank_correlation.value(), 0.9);
  EXPECT_NEAR(s.coverage.value(), 0.8, 0.15);
}

TEST(MeasuredRows, Attention) {
  const ValidationSummary s =
      pooled(predict_attention(CsvTable::parse(kAttentionRows, "rows").value()));
  EXPECT_EQ(s.count, 56);
  EXPECT_LT(s.median, kMedianOfSample * 0.065);
  EXPECT_LT(s.p90, kP90OfSample * 0.20);
  EXPECT_LT(std::abs(s.bias), 0.05);
  EXPECT_GT(s.rank_correlation.value(), 0.9);
  EXPECT_NEAR(s.coverage.value(), 0.8, 0.15);
}

}  // namespace
}  // namespace meshwright
