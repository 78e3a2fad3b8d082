// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/operator_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/temporary_file.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFile;

const std::string kGemm = "gpu,dtype,m,n,k,latency_ms\n";
const std::string kAttention =
    "gpu,batch_size,isl,num_heads,num_key_value_heads,head_dim,step,latency_ms\n";

std::vector<ValidatedRow> gemm(const std::string& rows) {
  return predict_gemm(CsvTable::parse(kGemm + rows, "t.csv").value());
}
std::vector<ValidatedRow> attention(const std::string& rows) {
  return predict_attention(CsvTable::parse(kAttention + rows, "t.csv").value());
}

TEST(GemmFamily, BadRowsAreSkippedWithTheirReasonAndStopNothing) {
  const auto rows = gemm(
      "h100_sxm,bfloat16,128,4096,4096,0.02\n"
      "h100_sxm,bfloat16,128,4096\n"
      "h100_sxm,bfloat16,,4096,4096,0.02\n"
      "h100_sxm,bfloat16,1.5,4096,4096,0.02\n"
      "h100_sxm,bfloat16,0,4096,4096,0.02\n"
      "h100_sxm,bfloat16,128,4096,4096,fast\n"
      "h100_sxm,bfloat16,128,4096,4096,0\n"
      "tpu_v5,bfloat16,128,4096,4096,0.02\n"
      ",bfloat16,128,4096,4096,0.02\n"
      "h100_sxm,nvfp4,128,4096,4096,0.02\n"
      "v100,bfloat16,128,4096,4096,0.02\n"
      "a100-80g,fp8,128,4096,4096,0.02\n"
      "h100,bf16,128,4096,4096,0.02\n");
  ASSERT_EQ(rows.size(), 13u);
  const char* reasons[] = {"",
                           "more or fewer cells",
                           "m = \"\" is not a whole number",
                           "m = \"1.5\" is not a whole number",
                           "m = \"0\" is not a whole number",
                           "latency_ms = \"fast\" is not a number",
                           "latency_ms = \"0\" is not a number above zero",
                           "device \"tpu_v5\"",
                           "gpu is empty",
                           "dtype \"nvfp4\" has no model",
                           "no constants of bf16 for architecture volta",
                           "no constants of fp8 for architecture ampere",
                           ""};
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].line, static_cast<int64_t>(i) + 2);
    EXPECT_THAT(rows[i].skipped, HasSubstr(reasons[i])) << i;
    EXPECT_EQ(rows[i].compared(), std::string(reasons[i]).empty()) << i;
  }
}

TEST(GemmFamily, RowNamesItsSourceDeviceAndBounds) {
  const ValidatedRow r = gemm("h100_sxm,bfloat16,128,4096,4096,0.02\n").front();
  EXPECT_EQ(r.id, "h100_sxm bfloat16 128 4096 4096");
  EXPECT_EQ(r.source, "gemm bf16");
  EXPECT_EQ(r.device, "h100_sxm");
  EXPECT_EQ(r.unit, "ms");
  EXPECT_DOUBLE_EQ(r.measured.value(), 0.02);
  EXPECT_LT(r.bound_low.value(), r.predicted.value());
  EXPECT_GT(r.bound_high.value(), r.predicted.value());
  // Our own name of the device is the same device.
  EXPECT_EQ(gemm("h100,bf16,128,4096,4096,0.02\n").front().predicted, r.predicted);
}

TEST(GemmFamily, KnownOddSetsAreMarked) {
  EXPECT_EQ(gemm("h100_sxm,int8_wo,64,64,64,1\n").front().source, "gemm int8_wo (marked)");
  EXPECT_EQ(gemm("h200_sxm,int8_wo,64,64,64,1\n").front().source, "gemm int8_wo");
  EXPECT_EQ(gemm("b200_sxm,fp8,8,64,64,1\n").front().source, "gemm fp8 (marked)");
  EXPECT_EQ(gemm("b200_sxm,fp8,9,64,64,1\n").front().source, "gemm fp8");
  EXPECT_EQ(gemm("l40s,bfloat16,8,64,4096,1\n").front().source, "gemm bf16 (marked)");
}

TEST(GemmFamily, ANewDeviceTakesItsNeighboursConstants) {
  const std::string shape = ",bfloat16,4096,8192,8192,1\n";
  const ValidatedRow b200 = gemm("b200_sxm" + shape).front();
  const ValidatedRow b300 = gemm("b300" + shape).front();
  EXPECT_EQ(b300.source, "gemm bf16 (constants of b200)");
  EXPECT_DOUBLE_EQ(b300.predicted.value(), b200.predicted.value());  // the same data sheet
  EXPECT_LT(b300.bound_low.value(), b200.bound_low.value());
  EXPECT_GT(b300.bound_high.value(), b200.bound_high.value());
  // 1.555 of 2.039 TB/s: a thin matmul is slower, by no more than that.
  const std::string thin = ",bfloat16,1,16384,16384,1\n";
  const double ratio =
      *gemm("a100-40g" + thin).front().predicted / *gemm("a100-80g" + thin).front().predicted;
  EXPECT_GT(ratio, 1.1);
  EXPECT_LT(ratio, 2039.0 / 1555);
}

TEST(AttentionFamily, OneNewTokenAfterOthersIsDecode) {
  EXPECT_EQ(attention("h100_sxm,8,1,32,8,128,1023,1\n").front().source, "attention decode");
  EXPECT_EQ(attention("h100_sxm,8,1,32,8,128,0,1\n").front().source, "attention prefill");
  EXPECT_EQ(attention("h100_sxm,8,512,32,8,128,0,1\n").front().source, "attention prefill");
  EXPECT_EQ(attention("h100_sxm,8,1,32,8,512,63,1\n").front().source, "attention decode (marked)");
  EXPECT_EQ(attention("h100_sxm,8,512,32,8,128,0,1\n").front().id, "h100_sxm 8 512 32 8 128 0");
}

TEST(AttentionFamily, BadRowsAreSkippedWithTheirReason) {
  const auto rows = attention(
      "h100_sxm,8,1,32,7,128,1023,1\n"
      "h100_sxm,8,1,32,8,128,-1,1\n"
      "h100_sxm,8,1,32,0,128,1,1\n"
      "v100,8,1,32,8,128,1,1\n");
  EXPECT_THAT(rows[0].skipped, HasSubstr("num_key_value_heads does not divide num_heads"));
  EXPECT_THAT(rows[1].skipped, HasSubstr("step = \"-1\""));
  EXPECT_THAT(rows[2].skipped, HasSubstr("num_key_value_heads = \"0\""));
  EXPECT_THAT(rows[3].skipped, HasSubstr("no constants of decode for architecture volta"));
}

TEST(OperatorFamilies, AreFoundByTheirHeaderAndTakeAUsersConstants) {
  const TemporaryFile table(kGemm + "h100_sxm,bfloat16,128,4096,4096,0.02\n", "t.csv");
  const auto built_in = validate_files({table.path()});
  ASSERT_TRUE(built_in.has_value());
  EXPECT_EQ(built_in->family, "gemm");

  OperatorFits fits = builtin_operator_fits("gemm");
  for (OperatorFit& fit : fits.fits) fit.constants["start_us"] += 1000;
  const TemporaryFile document(operator_fits_text(fits), "own.json");
  const auto own = validate_files({table.path()}, document.path());
  ASSERT_TRUE(own.has_value()) << to_string(own.error());
  EXPECT_NEAR(*own->rows[0].predicted - *built_in->rows[0].predicted, 1.0, 0.01);  // ms

  fits.family = "attention";
  const TemporaryFile wrong(operator_fits_text(fits), "wrong.json");
  EXPECT_THAT(to_string(validate_files({table.path()}, wrong.path()).error()),
              HasSubstr("is not that of the table, gemm"));
  fits.family = "gemm";
  fits.fits.clear();
  fits.fits.push_back({.device = "h100", .kind = "bf16", .rows = 1, .constants = {{"x", 1}}});
  fits.fits.back().held_out.rows = 1;
  const TemporaryFile strange(operator_fits_text(fits), "strange.json");
  EXPECT_THAT(validate_files({table.path()}, strange.path())->rows[0].skipped,
              HasSubstr("are not those of this model"));
}

TEST(OperatorFamilies, FilesOfOneFamilyArePooledAndOthersRefused) {
  const TemporaryFile first(kGemm + "h100_sxm,bfloat16,128,4096,4096,0.02\n", "first.csv");
  const TemporaryFile second(
      kGemm + "h100_sxm,bfloat16,256,4096,4096,0.02\nno_such,bfloat16,256,4096,4096,0.02\n",
      "second.csv");
  const auto pooled = validate_files({first.path(), second.path()});
  ASSERT_TRUE(pooled.has_value()) << to_string(pooled.error());
  ASSERT_EQ(pooled->rows.size(), 3u);
  EXPECT_EQ(pooled->rows[0].file, first.path());
  EXPECT_EQ(pooled->rows[1].file, second.path());
  EXPECT_EQ(pooled->rows[1].line, 2);
  EXPECT_EQ(pooled->rows[2].line, 3);
  EXPECT_FALSE(pooled->rows[2].skipped.empty());
  EXPECT_EQ(pooled->summary.back().source, "all");
  EXPECT_EQ(pooled->summary.back().count, 2);

  const TemporaryFile other("gpu,interconnect,ngpus,op,bytes,time_us,algbw,busbw,source,notes\n",
                            "other.csv");
  const auto mixed = validate_files({first.path(), other.path()});
  ASSERT_FALSE(mixed.has_value());
  EXPECT_THAT(to_string(mixed.error()), HasSubstr(other.path()));
  EXPECT_THAT(to_string(mixed.error()), HasSubstr("differs from gemm"));
}

}  // namespace
}  // namespace meshwright
