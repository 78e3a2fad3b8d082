// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace meshwright {
namespace {

using ::testing::HasSubstr;

constexpr const char* kConfig = R"({"model_type": "llama", "vocab_size": 10, "hidden_size": 4,
  "intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2,
  "num_key_value_heads": 1, "hidden_act": "silu", "tie_word_embeddings": true})";

/// The tensors of kConfig, BF16, one after the other.
constexpr const char* kHeader = R"({"__metadata__": {"format": "pt"},
  "model.embed_tokens.weight": {"dtype": "BF16", "shape": [10, 4], "data_offsets": [0, 80]},
  "model.layers.0.input_layernorm.weight": {"dtype": "BF16", "shape": [4], "data_offsets": [80, 88]},
  "model.layers.0.self_attn.q_proj.weight": {"dtype": "BF16", "shape": [4, 4], "data_offsets": [88, 120]},
  "model.layers.0.self_attn.k_proj.weight": {"dtype": "BF16", "shape": [2, 4], "data_offsets": [120, 136]},
  "model.layers.0.self_attn.v_proj.weight": {"dtype": "BF16", "shape": [2, 4], "data_offsets": [136, 152]},
  "model.layers.0.self_attn.o_proj.weight": {"dtype": "BF16", "shape": [4, 4], "data_offsets": [152, 184]},
  "model.layers.0.post_attention_layernorm.weight": {"dtype": "BF16", "shape": [4], "data_offsets": [184, 192]},
  "model.layers.0.mlp.gate_proj.weight": {"dtype": "BF16", "shape": [6, 4], "data_offsets": [192, 240]},
  "model.layers.0.mlp.up_proj.weight": {"dtype": "BF16", "shape": [6, 4], "data_offsets": [240, 288]},
  "model.layers.0.mlp.down_proj.weight": {"dtype": "BF16", "shape": [4, 6], "data_offsets": [288, 336]},
  "model.norm.weight": {"dtype": "BF16", "shape": [4], "data_offsets": [336, 344]}})";

class Safetensors : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "meshwright-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    std::ofstream(folder_ + "/config.json") << kConfig;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& header,
             size_t data_bytes = 344,
             const std::string& name = "model.safetensors") {
    std::ofstream out(folder_ + "/" + name, std::ios::binary);
    const uint64_t length = header.size();
    char bytes[8];
    std::memcpy(bytes, &length, 8);
    out.write(bytes, 8);
    out << header << std::string(data_bytes, '\0');
  }
  [[nodiscard]] std::string message() const {
    const Result<ModelSpec> model = load_model(folder_);
    return model ? "accepted" : to_string(model.error());
  }
  static std::string replaced(const std::string& from, const std::string& to) {
    std::string text = kHeader;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, from.size(), to);
  }

  std::string folder_;
};

TEST_F(Safetensors, AMatchingCheckpointIsAccepted) {
  EXPECT_EQ(message(), "accepted");  // no weights, nothing to check
  write(kHeader);
  EXPECT_EQ(message(), "accepted");
}

TEST_F(Safetensors, ShardsAreReadTogether) {
  const std::string all = kHeader;
  const size_t cut = all.find("\"model.layers.0.mlp.gate_proj");
  std::string first = all.substr(0, all.rfind(',', cut)) + "}";
  write(first, 344, "model-00001-of-00002.safetensors");
  EXPECT_THAT(message(), HasSubstr("model.layers.0.mlp.down_proj.weight"));
  write("{" + all.substr(cut), 344, "model-00002-of-00002.safetensors");
  EXPECT_EQ(message(), "accepted");
  write("{" + all.substr(cut), 344, "model-00003-of-00003.safetensors");
  EXPECT_THAT(message(), HasSubstr("is stored in two shards"));
}

TEST_F(Safetensors, AnotherShapeNamesBoth) {
  write(replaced("[6, 4], \"data_offsets\": [192", "[5, 4], \"data_offsets\": [192"));
  EXPECT_THAT(message(),
              HasSubstr("model.layers.0.mlp.gate_proj.weight = [5, 4]: must have the "
                        "shape [6, 4] of config.json"));
}

TEST_F(Safetensors, AMissingTensorIsNamed) {
  write(replaced("model.norm.weight", "model.norm.bias"));
  EXPECT_THAT(message(), HasSubstr("model.norm.weight: is missing from the checkpoint"));
}

TEST_F(Safetensors, ATornFileIsAnError) {
  write(kHeader, 100);
  EXPECT_THAT(message(), HasSubstr("must lie inside the file"));
  std::ofstream(folder_ + "/model.safetensors", std::ios::binary) << "abc";
  EXPECT_THAT(message(), HasSubstr("is too short for a safetensors header"));
  write(std::string(kHeader).substr(0, 50), 0);
  EXPECT_THAT(message(), HasSubstr("is not valid JSON"));
  std::ofstream(folder_ + "/model.safetensors", std::ios::binary)
      << std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) << "{}";
  EXPECT_THAT(message(), HasSubstr("header length"));
}

TEST_F(Safetensors, PackedAndTransposedTensorsAreOne) {
  // GPT-2 stores query, key and value as one [D, 3 D].
  std::ofstream(folder_ + "/config.json")
      << R"({"model_type": "gpt2", "vocab_size": 10, "n_embd": 4,
    "n_layer": 1, "n_head": 2, "n_positions": 8, "activation_function": "gelu_new"})";
  const auto tensor = [](const char* name, const char* shape) {
    return std::string("\"") + name + "\": {\"dtype\": \"F32\", \"shape\": " + shape +
           ", \"data_offsets\": [0, 0]}";
  };
  const auto header = [&](const char* qkv) {
    return "{" + tensor("wte.weight", "[10, 4]") + "," + tensor("wpe.weight", "[8, 4]") + "," +
           tensor("h.0.ln_1.weight", "[4]") + "," + tensor("h.0.ln_1.bias", "[4]") + "," +
           tensor("h.0.attn.c_attn.weight", qkv) + "," + tensor("h.0.attn.c_attn.bias", "[12]") +
           "," + tensor("h.0.attn.c_proj.weight", "[4, 4]") + "," +
           tensor("h.0.attn.c_proj.bias", "[4]") + "," + tensor("h.0.ln_2.weight", "[4]") + "," +
           tensor("h.0.ln_2.bias", "[4]") + "," + tensor("h.0.mlp.c_fc.weight", "[4, 16]") + "," +
           tensor("h.0.mlp.c_fc.bias", "[16]") + "," + tensor("h.0.mlp.c_proj.weight", "[16, 4]") +
           "," + tensor("h.0.mlp.c_proj.bias", "[4]") + "," + tensor("ln_f.weight", "[4]") + "," +
           tensor("ln_f.bias", "[4]") + "}";
  };
  write(header("[4, 12]"));
  EXPECT_EQ(message(), "accepted");
  write(header("[4, 8]"));
  EXPECT_THAT(message(), HasSubstr("c_attn.weight = [4, 8]: must have the shape"));
}

}  // namespace
}  // namespace meshwright
