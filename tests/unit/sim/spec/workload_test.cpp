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

// Token i of a document of l tokens attends to min(i, w) tokens; over a document without window
// l (l + 1) / 2, which the model counts as l^2 / 2.
TEST(Workload, AttentionOfPackedDocumentsIsTheirSumOfSquares) {
  Workload w{.seq_len = 4096};
  EXPECT_EQ(w.attention_span(), 4096);
  EXPECT_EQ(w.attention_span(1024), 2 * 1024 - 1024 * 1024 / 4096.0);
  EXPECT_EQ(w.attention_span(8192), 4096);
  w.document_lengths = {1024, 3072};
  EXPECT_EQ(w.attention_span(), (1024.0 * 1024 + 3072.0 * 3072) / 4096);
  EXPECT_EQ(w.attention_span(2048), (1024.0 * 1024 + 2 * 2048.0 * 3072 - 2048.0 * 2048) / 4096);
  w.document_lengths = {10'000};  // two whole sequences and 1,808 tokens
  EXPECT_DOUBLE_EQ(w.attention_span(), (2 * 4096.0 * 4096 + 1808.0 * 1808) / 10'000);
}

TEST(Workload, DocumentLengthsAreReadFromTheDocumentAndOverridden) {
  const TemporaryFile file(R"({
    "schema_version": 1, "name": "chat", "kind": "sft", "seq_len": 2048,
    "global_batch_tokens": 65536, "precision": "bf16", "learning_rate": 1e-5,
    "document_lengths": [300, 1200]})");
  EXPECT_EQ(load_workload(file.path(), false, {})->document_lengths, (std::vector<int>{300, 1200}));
  WorkloadOverrides o;
  o.document_lengths = {512};
  EXPECT_EQ(load_workload(file.path(), false, o)->document_lengths, std::vector<int>{512});
}

TEST(Workload, UnknownNameListsTheBuiltIns) {
  EXPECT_EQ(load_workload("pretraining", false, {}).error().remedy, "built-in: pretrain, sft");
}

}  // namespace
}  // namespace meshwright
