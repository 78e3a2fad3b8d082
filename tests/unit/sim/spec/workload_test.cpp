// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sim/temporary_file.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFile;

TEST(Workload, PretrainDefaults) {
  const Workload gpu = load_workload("pretrain", false, {}).value();
  EXPECT_EQ(gpu.seq_len, 4096);
  EXPECT_EQ(gpu.tokens_per_step(), 4 * 1024 * 1024);
  EXPECT_EQ(gpu.global_batch, 1024);
  EXPECT_EQ(gpu.precision, Precision::kBf16);
  EXPECT_EQ(gpu.tokens, std::nullopt);
  const Workload cpu = load_workload("pretrain", true, {}).value();
  EXPECT_EQ(cpu.seq_len, 256);
  EXPECT_EQ(cpu.tokens_per_step(), 4096);
  EXPECT_EQ(cpu.precision, Precision::kFp32);
}

TEST(Workload, OverridesReplaceTheDocument) {
  const Workload w = load_workload("pretrain",
                                   false,
                                   {.seq_len = 2048,
                                    .global_batch_tokens = 65536,
                                    .tokens = 15e12,
                                    .precision = Precision::kFp32})
                         .value();
  EXPECT_EQ(w.seq_len, 2048);
  EXPECT_EQ(w.global_batch, 32);
  EXPECT_EQ(w.tokens, 15e12);
  EXPECT_EQ(w.precision, Precision::kFp32);
}

TEST(Workload, BatchMustBeWholeSequences) {
  const auto w = load_workload("pretrain", false, {.seq_len = 1000, .global_batch_tokens = 4096});
  ASSERT_FALSE(w.has_value());
  EXPECT_EQ(to_string(w.error()),
            "--global-batch: global_batch_tokens = 4096: must be a multiple of the sequence length "
            "(1000); use 4000 or 5000");
  // The document's own batch no longer divides: the document is named.
  EXPECT_EQ(load_workload("pretrain", false, {.seq_len = 1000}).error().where, "built-in pretrain");
}

TEST(Workload, BatchOfMoreSequencesThanCanBeSimulatedIsRefused) {
  const auto w = load_workload("pretrain", false, {.global_batch_tokens = int64_t{4096} << 21});
  ASSERT_FALSE(w.has_value());
  EXPECT_THAT(w.error().rule, HasSubstr("is 2097152 sequences of 4096 tokens, more than 1048576"));
}

TEST(Workload, OwnDocument) {
  const TemporaryFile good(
      R"({"schema_version": 1, "name": "mine", "kind": "sft", "seq_len": 128,
          "global_batch_tokens": 1024, "learning_rate": 0.001, "seed": 7})");
  const Workload w = load_workload(good.path(), true, {}).value();
  EXPECT_EQ(w.kind, WorkloadKind::kSft);
  EXPECT_EQ(w.global_batch, 8);
  EXPECT_EQ(w.seed, 7u);

  const TemporaryFile unknown(
      R"({"schema_version": 1, "name": "mine", "kind": "sft", "seq_len": 128,
          "global_batch_tokens": 1024, "lerning_rate": 0.001})");
  EXPECT_EQ(load_workload(unknown.path(), true, {}).error().remedy,
            "did you mean \"learning_rate\"?");

  const TemporaryFile kind(R"({"schema_version": 1, "name": "mine", "kind": "pretrian",
                               "seq_len": 128, "global_batch_tokens": 1024})");
  EXPECT_THAT(to_string(load_workload(kind.path(), true, {}).error()),
              HasSubstr("must be one of pretrain, sft; did you mean pretrain?"));

  const TemporaryFile cpu(R"({"schema_version": 1, "name": "mine", "kind": "sft", "seq_len": 128,
                              "global_batch_tokens": 1024, "on_cpu": {"seq_len": 0}})");
  EXPECT_THAT(to_string(load_workload(cpu.path(), false, {}).error()),
              HasSubstr("#/on_cpu/seq_len: seq_len = 0: must be from 1"));
}

TEST(Workload, UnknownNameListsTheBuiltIns) {
  EXPECT_EQ(load_workload("pretraining", false, {}).error().remedy, "built-in: pretrain, sft");
}

}  // namespace
}  // namespace meshwright
