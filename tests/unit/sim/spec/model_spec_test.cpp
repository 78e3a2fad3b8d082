// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/spec/logical_tensors.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

/// A small config.json with one line more; later keys win, so that `extra` may also replace one.
std::string config(const std::string& extra) {
  return R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "hidden_act": "silu")" +
         (extra.empty() ? "" : ", " + extra) + "}";
}

std::string message(const std::string& extra) {
  const auto model = parse_hf_config(config(extra), "config.json", "x");
  return model ? "accepted" : to_string(model.error());
}

struct Total {
  const char* name;
  int64_t parameters;
};

class PublishedTotals : public ::testing::TestWithParam<Total> {};

// The sums over the tensors of the published checkpoints.
TEST_P(PublishedTotals, AreExact) {
  EXPECT_EQ(parameter_count(load_model(GetParam().name).value()), GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(ModelSpec,
                         PublishedTotals,
                         ::testing::Values(Total{"llama-2-7b", 6'738'415'616},
                                           Total{"llama-2-13b", 13'015'864'320},
                                           Total{"llama-2-70b", 68'976'648'192},
                                           Total{"llama-3-8b", 8'030'261'248},
                                           Total{"llama-3-70b", 70'553'706'496},
                                           Total{"mistral-7b", 7'241'732'096},
                                           Total{"qwen2.5-7b", 7'615'616'512},
                                           Total{"qwen2.5-0.5b", 494'032'768},
                                           Total{"qwen2.5-72b", 72'706'203'648},
                                           Total{"llama-65b", 65'285'660'672},
                                           Total{"llama-3.1-405b", 405'853'388'800},
                                           Total{"llama-3.2-1b", 1'235'814'400},
                                           Total{"llama-3.2-3b", 3'212'749'824},
                                           Total{"qwen3-0.6b", 596'049'920},
                                           Total{"qwen3-4b", 4'022'468'096},
                                           Total{"qwen3-8b", 8'190'735'360},
                                           Total{"qwen3-30b-a3b", 30'532'122'624},
                                           Total{"qwen3-235b-a22b", 235'093'634'560},
                                           Total{"gemma-2-2b", 2'614'341'888},
                                           Total{"gemma-2-9b", 9'241'705'984},
                                           Total{"gemma-2-27b", 27'227'128'320},
                                           Total{"phi-3-mini-4k", 3'821'079'552},
                                           Total{"phi-3-medium-4k", 13'960'238'080},
                                           Total{"mixtral-8x7b", 46'702'792'704},
                                           Total{"deepseek-v3", 671'026'419'200},
                                           Total{"gpt2", 124'439'808},
                                           Total{"gpt2-medium", 354'823'168},
                                           Total{"gpt2-large", 774'030'080},
                                           Total{"gpt2-xl", 1'557'611'200},
                                           Total{"opt-125m", 125'239'296},
                                           Total{"opt-1.3b", 1'315'758'080},
                                           Total{"opt-6.7b", 6'658'473'984},
                                           Total{"opt-30b", 29'974'540'288}));

TEST(ModelSpec, ActiveParametersAreThePublishedOnes) {
  // "46.7B in all, 12.9B per token" (arXiv:2401.04088); Qwen3-30B-A3B 3.3B, Qwen3-235B-A22B 22B
  // (arXiv:2505.09388); DeepSeek-V3 37B, and 14B of multi-token prediction of which embedding and
  // head are shared (arXiv:2412.19437).
  const auto active = [](const char* name) {
    return static_cast<double>(active_parameter_count(load_model(name).value())) / 1e9;
  };
  EXPECT_NEAR(active("mixtral-8x7b"), 12.9, 0.05);
  EXPECT_NEAR(active("qwen3-30b-a3b"), 3.3, 0.06);
  EXPECT_NEAR(active("qwen3-235b-a22b"), 22.0, 0.3);
  EXPECT_NEAR(active("deepseek-v3"), 37.0, 0.6);
  EXPECT_EQ(active_parameter_count(load_model("llama-3-8b").value()), 8'030'261'248);
  const int64_t mtp = mtp_parameter_count(load_model("deepseek-v3").value());
  EXPECT_NEAR(static_cast<double>(mtp) / 1e9, 11.6, 0.1);
}

TEST(ModelSpec, LedgerAddsUpToTheTotal) {
  for (const std::string& name : builtin_models()) {
    const ModelSpec m = load_model(name).value();
    const std::vector<LedgerEntry> ledger = parameter_ledger(m);
    ASSERT_EQ(ledger.size(), static_cast<size_t>(num_blocks(m)));
    int64_t sum = 0;
    for (const LedgerEntry& e : ledger) sum += e.total();
    EXPECT_EQ(sum, parameter_count(m)) << name;
  }
}

TEST(ModelSpec, HeadWidthNeedNotBeWidthOverHeads) {
  // Qwen3-4B has head_dim 128 where 2560 / 32 = 80: the projections are 4096 and 1024 wide.
  const auto m = parse_hf_config(config(R"("head_dim": 32)"), "config.json", "x").value();
  for (const LogicalTensor& t : logical_tensors(m)) {
    if (t.role == ParamRole::kQuery) {
      EXPECT_EQ(t.shape, (std::vector<int64_t>{4 * 32, 64}));
    }
    if (t.role == ParamRole::kKey) {
      EXPECT_EQ(t.shape, (std::vector<int64_t>{2 * 32, 64}));
    }
    if (t.role == ParamRole::kAttnOut) {
      EXPECT_EQ(t.shape, (std::vector<int64_t>{64, 4 * 32}));
    }
  }
}

TEST(ModelSpec, TiedProjectionIsCountedOnce) {
  const auto untied = parse_hf_config(config(""), "config.json", "x").value();
  const auto tied = parse_hf_config(config(R"("tie_word_embeddings": true)"), "c", "x").value();
  EXPECT_EQ(parameter_count(untied) - parameter_count(tied), 100 * 64);
}

TEST(ModelSpec, QwenHasBiasesOnQueryKeyAndValueAlone) {
  const auto llama = parse_hf_config(config(""), "config.json", "x").value();
  const auto qwen = parse_hf_config(config(R"("model_type": "qwen2")"), "config.json", "x").value();
  EXPECT_EQ(parameter_count(qwen) - parameter_count(llama), 2 * (64 + 32 + 32));
}

TEST(ModelSpec, TensorNamesAreUniqueAndInBlockOrder) {
  std::set<std::string> names;
  int block = 0;
  for (const LogicalTensor& t : logical_tensors(load_model("qwen2.5-7b").value())) {
    EXPECT_TRUE(names.insert(t.name).second) << t.name;
    EXPECT_GE(t.block, block);
    block = t.block;
  }
  EXPECT_EQ(block, 28 + 1);
}

TEST(ModelSpec, DefaultsAreThoseOfTheFormat) {
  const auto m = parse_hf_config(config(R"("num_key_value_heads": null)"), "c", "x").value();
  EXPECT_EQ(m.num_kv_heads, 4);  // multi-head attention
  EXPECT_EQ(m.head_dim, 16);
  EXPECT_FALSE(m.tied_embeddings);
}

TEST(ModelSpec, UnknownTypeListsTheKnownOnes) {
  EXPECT_EQ(message(R"("model_type": "mamba")"),
            "config.json#/model_type: model_type = \"mamba\": is not a known model type; "
            "known: llama, mistral, qwen2, qwen3, gpt2, opt, gemma2, phi3, mixtral, qwen3_moe, "
            "deepseek_v3");
}

TEST(ModelSpec, StretchedPositionsAreKeptForTheExecutorToJudge) {
  const auto m =
      parse_hf_config(config(R"("rope_scaling": {"type": "linear", "factor": 2.0})"), "c", "x");
  EXPECT_EQ(m.value().rope_scaling, R"({"factor":2.0,"type":"linear"})");
  EXPECT_EQ(parse_hf_config(config(R"("rope_scaling": null)"), "c", "x").value().rope_scaling, "");
}

TEST(ModelSpec, FamiliesReadTheirOwnKeys) {
  const ModelSpec gpt2 = load_model("gpt2-xl").value();
  EXPECT_EQ(gpt2.d_ff, 4 * 1600);
  EXPECT_EQ(gpt2.norm, NormKind::kLayerNorm);
  EXPECT_TRUE(gpt2.linear_bias && gpt2.tied_embeddings);
  EXPECT_EQ(gpt2.dropout, 0.1);
  const ModelSpec gemma = load_model("gemma-2-9b").value();
  EXPECT_TRUE(gemma.post_norms && gemma.tied_embeddings && gemma.gated_ffn());
  EXPECT_EQ(gemma.window_every, 2);
  const ModelSpec deepseek = load_model("deepseek-v3").value();
  EXPECT_FALSE(deepseek.is_moe_layer(2));
  EXPECT_TRUE(deepseek.is_moe_layer(3));
  EXPECT_EQ(deepseek.head_dim, 192);
  EXPECT_THAT(parse_hf_config(R"({"model_type": "opt", "vocab_size": 10, "hidden_size": 64,
      "word_embed_proj_dim": 32, "ffn_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 4})",
                              "c",
                              "x")
                  .error()
                  .rule,
              HasSubstr("changes the mathematics"));
}

TEST(ModelSpec, SettingsThatChangeTheMathematicsAreRefused) {
  const char* unsupported[] = {R"("hidden_act": "gelu")",
                               R"("mlp_bias": true)",
                               R"("attention_bias": true)",
                               R"("attention_dropout": 0.1)",
                               R"("pretraining_tp": 2)"};
  for (const char* setting : unsupported) {
    EXPECT_THAT(message(setting), HasSubstr("changes the mathematics and is not supported"))
        << setting;
  }
}

TEST(ModelSpec, SettingsAtTheirNeutralValueAndForeignKeysAreAccepted) {
  EXPECT_EQ(message(R"("rope_scaling": null, "attention_dropout": 0.0, "pretraining_tp": 1,
                       "mlp_bias": false, "torch_dtype": "bfloat16", "use_cache": true)"),
            "accepted");
}

TEST(ModelSpec, BadSizesNameFieldValueAndRange) {
  EXPECT_EQ(message(R"("hidden_size": 0)"),
            "config.json#/hidden_size: hidden_size = 0: must be from 1 to 1e+06");
  EXPECT_THAT(message(R"("hidden_size": -64)"), HasSubstr("hidden_size = -64: must be from 1"));
  EXPECT_THAT(message(R"("hidden_size": 64.5)"), HasSubstr("= 64.5: must be a whole number"));
  EXPECT_THAT(message(R"("hidden_size": "64")"), HasSubstr("= \"64\": must be a whole number"));
  EXPECT_THAT(message(R"("vocab_size": 1e300)"), HasSubstr("must be from 1 to 1e+08"));
  EXPECT_THAT(message(R"("num_hidden_layers": 99999999999999999999)"), HasSubstr("must be from"));
  EXPECT_THAT(message(R"("intermediate_size": null)"),
              HasSubstr("intermediate_size = missing: is required"));
}

TEST(ModelSpec, HeadsMustDivide) {
  EXPECT_THAT(message(R"("num_key_value_heads": 3)"),
              HasSubstr("num_key_value_heads = 3: must divide num_attention_heads (4)"));
  EXPECT_THAT(message(R"("num_attention_heads": 6)"), HasSubstr("must be a multiple of"));
  EXPECT_THAT(message(R"("head_dim": 7)"), HasSubstr("head_dim = 7: must be even"));
}

TEST(ModelSpec, LargestAcceptedModelCountsWithoutOverflow) {
  const auto m = parse_hf_config(
      config(R"("vocab_size": 100000000, "hidden_size": 1000000, "intermediate_size": 1000000,
                "num_hidden_layers": 10000, "num_attention_heads": 10000,
                "num_key_value_heads": 10000, "head_dim": 10000)"),
      "config.json",
      "x");
  ASSERT_TRUE(m.has_value());
  EXPECT_GT(parameter_count(*m), int64_t{4'000'000'000'000'000'000});
}

TEST(ModelSpec, SlidingWindowIsKeptWhereItIsInUse) {
  EXPECT_EQ(load_model("mistral-7b").value().sliding_window, 4096);
  const auto off = parse_hf_config(
      config(R"("model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": false)"),
      "c",
      "x");
  EXPECT_EQ(off.value().sliding_window, std::nullopt);
}

TEST(ModelSpec, BrokenJsonNamesLineAndColumn) {
  const auto m = parse_hf_config(
      "{\n  \"model_type\": \"llama\",\n  \"vocab_size\" 100\n}", "config.json", "x");
  ASSERT_FALSE(m.has_value());
  EXPECT_THAT(to_string(m.error()), HasSubstr("config.json: line 3, column 18: is not valid JSON"));
  EXPECT_THAT(to_string(parse_hf_config("[1]", "config.json", "x").error()),
              HasSubstr("must be a JSON object"));
}

TEST(ModelSpec, UnknownNameSuggestsTheNearest) {
  EXPECT_EQ(load_model("llama-3-7b").error().remedy, "did you mean llama-2-7b?");
  EXPECT_THAT(load_model("no-such-thing").error().remedy,
              HasSubstr("built-in: deepseek-v3, gemma-2-27b"));
}

}  // namespace
}  // namespace meshwright
