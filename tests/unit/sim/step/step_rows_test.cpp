// SPDX-License-Identifier: Apache-2.0
// The step model against published steps: what `meshwright validate` does to a whole table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/fit/step_fit.h"
#include "sim/validate/functional_family.h"
#include "sim/validate/training_case.h"
#include "sim/validate/training_family.h"
#include "sim/validate/training_stack.h"
#include "tests/unit/sim/step/published_steps.h"

namespace meshwright {
namespace {

CsvTable published() { return CsvTable::parse(testing::kPublishedSteps, "published").value(); }

TEST(PublishedSteps, AreWithinTheModelsAccuracy) {
  double sum = 0;
  int count = 0, inside = 0;
  for (const ValidatedRow& row : predict_training_rows(published())) {
    if (row.unit != "s") continue;
    ASSERT_EQ(row.skipped, "") << row.id;
    ASSERT_TRUE(row.rel_err()) << row.id;
    EXPECT_LT(std::abs(std::log(*row.predicted / *row.measured)), std::log(1.45))
        << row.id << ": " << *row.predicted << " s, measured " << *row.measured;
    sum += std::abs(*row.rel_err());
    ++count;
    if (*row.bound_low <= *row.measured && *row.measured <= *row.bound_high) ++inside;
  }
  ASSERT_GE(count, 36);
  EXPECT_LT(sum / count, 0.08);
  EXPECT_GT(inside, 0.7 * count);
}

TEST(PublishedSteps, PeakMemoryOfGiBRowsIsCloseAndBounded) {
  int count = 0;
  double sum = 0;
  for (const ValidatedRow& row : predict_training_rows(published())) {
    if (row.unit != "GiB") continue;
    ++count;
    sum += std::abs(*row.rel_err());
    EXPECT_LT(*row.measured, *row.bound_high) << row.id;
  }
  ASSERT_GE(count, 5);
  EXPECT_LT(sum / count, 0.04);
}

CsvTable one_row(const std::string& change_from = "", const std::string& change_to = "") {
  std::string text =
      "id,source,model,seq_len,gpu_norm,num_gpus,tp,pp,dp,global_batch,micro_batch,precision,"
      "framework,measured_step_s,exclude\n"
      "x,me,Llama 3 8B,8192,h100-80g,64,1,1,64,128,2,bf16,torchtitan,3,no\n";
  if (const size_t at = text.find(change_from); !change_from.empty() && at != std::string::npos) {
    text.replace(at, change_from.size(), change_to);
  }
  return CsvTable::parse(text, "row").value();
}

TEST(TrainingCase, NamesWhyARowIsSkipped) {
  EXPECT_EQ(training_case(one_row(), 0).skipped, "");
  EXPECT_EQ(training_case(one_row("Llama 3 8B", "secret"), 0).skipped,
            "unknown model without architecture columns");
  EXPECT_EQ(training_case(one_row("h100-80g", "abacus"), 0).skipped, "unknown device");
  EXPECT_EQ(training_case(one_row(",128,2,", ",,2,"), 0).skipped, "no global batch");
  EXPECT_EQ(training_case(one_row(",1,1,64,", ",8,1,64,"), 0).skipped,
            "tp x pp x cp x dp is not the number of GPUs");
  EXPECT_EQ(training_case(one_row(",3,no", ",,no"), 0).skipped, "no measured time");
  EXPECT_THAT(training_case(one_row(",3,no", ",3,yes"), 0).skipped,
              ::testing::HasSubstr("excluded"));
}

TEST(TrainingCase, KnowsTheStackByNameAndYears) {
  EXPECT_EQ(framework_profile("Megatron-DeepSpeed", "a100"), "megatron_deepspeed");
  EXPECT_EQ(framework_profile("Megatron-LM 2021", "a100"), "megatron_classic");
  EXPECT_EQ(framework_profile("Megatron-LM", "h100"), "megatron_core");
  EXPECT_EQ(framework_profile("Megatron-Core", "a100"), "megatron_core");
  EXPECT_EQ(framework_profile("something else", "a100"), "torchtitan");
}

TEST(TrainingCase, YearIsANumberOfItsOwn) {
  EXPECT_EQ(year_in("Megatron-LM 2021"), 2021);
  EXPECT_EQ(year_in("Megatron-Core (Sep-2026)"), 2026);
  EXPECT_EQ(year_in("1F1B, 20260 steps, v20.3"), 0);
  EXPECT_EQ(year_in("12026"), 0);
  EXPECT_EQ(year_in(""), 0);
}

/// A run of Megatron-Core on 8 B200 with experts, with the columns that tell its stack.
TrainingCase core_case(const std::string& framework,
                       const std::string& year,
                       const std::string& overlap) {
  const std::string text =
      "id,source,model,seq_len,gpu_norm,num_gpus,tp,pp,ep,dp,global_batch,micro_batch,precision,"
      "zero_norm,framework,release_year,overlap,measured_step_s,exclude\n"
      "x,me,Qwen3_30B_a3B,4096,b200,8,1,1,8,8,512,4,mxfp8,1," +
      framework + "," + year + "," + overlap + ",9,no\n";
  return training_case(CsvTable::parse(text, "row").value(), 0);
}

TEST(TrainingCase, ReleaseAndOverlapOfMegatronCoreAreColumns) {
  const StepConstants constants = StepConstants::builtin().value();
  const TrainingCase undated = core_case("Megatron-Core", "", "");
  const TrainingCase older = core_case("Megatron-Core", "2025", "");
  const TrainingCase newer = core_case("Megatron-Core", "2026", "");
  const TrainingCase plain = core_case("Megatron-Core", "2026", "none");
  ASSERT_EQ(undated.skipped, "");
  EXPECT_EQ(undated.framework, "megatron_core");
  EXPECT_EQ(older.framework, "megatron_core");
  EXPECT_EQ(newer.framework, "megatron_core_2026");
  EXPECT_EQ(core_case("Megatron-Core 2026", "", "").framework, "megatron_core_2026");
  EXPECT_EQ(plain.framework, "megatron_core_plain");
  EXPECT_LT(predict_case(newer, constants).total_s(), predict_case(older, constants).total_s());
  EXPECT_LT(predict_case(older, constants).total_s(), predict_case(plain, constants).total_s());
  // What is not said costs certainty, not the median.
  EXPECT_EQ(predict_case(undated, constants).total_s(), predict_case(older, constants).total_s());
  EXPECT_GT(prediction_spread(undated, constants), prediction_spread(older, constants));
}

TEST(FunctionalCase, ReadsLayoutAndSkipsOtherModels) {
  const CsvTable table =
      CsvTable::parse(
          "case,L,h,heads,kv,ffn,seq,mbs,gbs,tp,pp,vpp,cp,ep,exp,sp,do,bf16,rc,mem,it\n"
          // Golden values of Megatron-LM's functional tests.
          "gpt/gpt3_mcore_te_tp2_pp2_resume_torch_dist_cp2_nondeterministic,12,512,8,,,1024,4,32,"
          "2,2,,2,1,,true,,true,,936825344.0,0.29352\n"
          "t5/t5_mcore_tp4_pp1,,768,12,,3072,,4,32,4,1,,1,1,,,,true,,1833295360.0,0.50842\n",
          "functional")
          .value();
  const std::vector<ValidatedRow> rows = predict_functional_rows(table);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_NEAR(*rows[0].predicted / 0.29352, 1, 0.25);
  EXPECT_NEAR(*rows[1].predicted / 0.8725, 1, 0.15);
  EXPECT_NE(rows[2].skipped, "");
}

TEST(StepConstants, ApplyByFrameworkAndDevice) {
  const StepConstants constants = StepConstants::parse(R"({"sets": [
        {"name": "all", "values": {"host_layer_s": 1e-4, "gemm_fraction": 0.5}},
        {"name": "narrow", "frameworks": ["f"], "devices": ["d"], "values": {"host_layer_s": 2e-4},
         "fitted": ["host_layer_s"], "origin": "test"}]})",
                                                       "test")
                                      .value();
  DeviceFacts device;
  FrameworkProfile profile;
  constants.apply("f", "other", device, profile);
  EXPECT_EQ(profile.host_layer_s, 1e-4);
  EXPECT_EQ(device.gemm_fraction, 0.5);
  constants.apply("f", "d", device, profile);
  EXPECT_EQ(profile.host_layer_s, 2e-4);
  EXPECT_FALSE(
      StepConstants::parse(R"({"sets": [{"name": "x", "values": {"nonsense": 1}}]})", "test")
          .has_value());
}

TEST(StepConstants, SetsNameStacksAndDeviceClassesAlone) {
  const std::set<std::string> frameworks{"megatron_classic",
                                         "megatron_deepspeed",
                                         "deepspeed",
                                         "megatron_core",
                                         "megatron_core_2026",
                                         "megatron_core_plain",
                                         "megatron_core_test",
                                         "composer",
                                         "torchtitan",
                                         "native"};
  const std::set<std::string> classes{
      "v100", "a100", "h100", "h100_500w", "blackwell", "blackwell_ultra", "mi", "ada"};
  const StepConstants constants = StepConstants::builtin().value();
  ASSERT_FALSE(constants.sets().empty());
  for (const StepConstantSet& set : constants.sets()) {
    for (const std::string& f : set.frameworks) EXPECT_TRUE(frameworks.contains(f)) << f;
    for (const std::string& d : set.devices) EXPECT_TRUE(classes.contains(d)) << d;
  }
}

/// Mean of |log(predicted / measured)| over the rows of one framework.
double mean_log_error(const CsvTable& table, const StepConstants& constants, const char* stack) {
  double sum = 0;
  int n = 0;
  for (size_t i = 0; i < table.num_rows(); ++i) {
    const TrainingCase c = training_case(table, i);
    if (c.framework != stack) continue;
    sum += std::abs(std::log(predict_case(c, constants).total_s() / *c.measured_s));
    ++n;
  }
  return sum / n;
}

TEST(StepFit, FollowsTheRowsItIsGiven) {
  const CsvTable table = published();
  const char* stack = "megatron_deepspeed";
  const auto report =
      fit_step_constants({&table}, [&](const TrainingCase& c) { return c.framework == stack; });
  ASSERT_TRUE(report.has_value());
  EXPECT_GE(report->num_rows, 10U);
  EXPECT_LT(mean_log_error(table, report->constants, stack),
            mean_log_error(table, StepConstants::builtin().value(), stack));
  const CsvTable empty = CsvTable::parse("id,source\n", "empty").value();
  EXPECT_FALSE(fit_step_constants({&empty}).has_value());
}

}  // namespace
}  // namespace meshwright
