// SPDX-License-Identifier: Apache-2.0
// Reads a Hugging Face config.json into a ModelSpec.
//
// Foreign keys are ignored, except those that change the mathematics: unsupported ones are errors,
// because a plan for another function than the user's is worse than none.
#include <fmt/format.h>

#include <filesystem>

#include "sim/core/json_reader.h"
#include "sim/spec/builtin_documents.h"
#include "sim/spec/model_spec.h"

namespace meshwright {
namespace {

// Far above any model, and low enough that a parameter count stays within int64.
constexpr Range kVocabulary{1, 1e8};
constexpr Range kWidth{1, 1e6};
constexpr Range kFew{1, 1e4};
constexpr Range kTokens{1, 1e9};

struct FamilyName {
  const char* model_type;
  ModelFamily family;
};
constexpr FamilyName kFamilies[] = {{"llama", ModelFamily::kLlama},
                                    {"mistral", ModelFamily::kMistral},
                                    {"qwen2", ModelFamily::kQwen2}};

void require_default(ObjectReader& r, const Json& config, const char* key, const Json& expected) {
  const auto it = config.find(key);
  if (it == config.end() || it->is_null() || *it == expected) return;
  r.fail(key,
         it->dump(),
         "changes the mathematics and is not supported",
         fmt::format("only {} is", expected.dump()));
}

}  // namespace

Result<ModelSpec> parse_hf_config(std::string_view text,
                                  const std::string& origin,
                                  std::string name) {
  MW_ASSIGN_OR_RETURN(const Json config, parse_json(text, origin));
  ObjectReader r(config, origin);
  MW_RETURN_IF_ERROR(r.finish(false));
  ModelSpec m;
  m.name = std::move(name);

  const std::string type = r.text("model_type");
  MW_RETURN_IF_ERROR(r.finish(false));
  std::vector<std::string> known;
  bool found = false;
  for (const FamilyName& f : kFamilies) {
    known.emplace_back(f.model_type);
    if (type != f.model_type) continue;
    m.family = f.family;
    found = true;
  }
  if (!found)
    r.fail("model_type", '"' + type + '"', "is not a known model type", "known: " + join(known));

  m.vocab_size = r.integer("vocab_size", kVocabulary);
  m.d_model = r.integer("hidden_size", kWidth);
  m.d_ff = r.integer("intermediate_size", kWidth);
  m.num_layers = r.integer("num_hidden_layers", kFew);
  m.num_heads = r.integer("num_attention_heads", kFew);
  m.num_kv_heads = r.integer_or("num_key_value_heads", m.num_heads, kFew);
  m.max_seq_len = r.integer_or("max_position_embeddings", 2048, kTokens);
  m.norm_eps = r.number_or("rms_norm_eps", 1e-6, {1e-12, 1.0});
  m.rope_theta = r.number_or("rope_theta", 10000.0, {1.0, 1e12});
  m.tied_embeddings = r.boolean_or("tie_word_embeddings", false);
  m.qkv_bias = m.family == ModelFamily::kQwen2;
  MW_RETURN_IF_ERROR(r.finish(false));

  if (m.num_heads % m.num_kv_heads != 0) {
    r.fail("num_key_value_heads",
           std::to_string(m.num_kv_heads),
           fmt::format("must divide num_attention_heads ({})", m.num_heads));
  }
  if (r.has("head_dim")) {
    m.head_dim = r.integer("head_dim", kFew);
  } else if (m.d_model % m.num_heads != 0) {
    r.fail("hidden_size",
           std::to_string(m.d_model),
           fmt::format("must be a multiple of num_attention_heads ({}) when head_dim is not given",
                       m.num_heads));
  } else {
    m.head_dim = m.d_model / m.num_heads;
  }
  if (m.head_dim % 2 != 0) {
    r.fail("head_dim", std::to_string(m.head_dim), "must be even: rotary embedding turns pairs");
  }
  require_default(r, config, "hidden_act", "silu");
  require_default(r, config, "rope_scaling", nullptr);
  require_default(r, config, "rope_parameters", nullptr);
  require_default(r, config, "mlp_bias", false);
  require_default(r, config, "attention_bias", false);
  require_default(r, config, "attention_dropout", 0.0);
  require_default(r, config, "pretraining_tp", 1);
  const bool window_in_use =
      m.family != ModelFamily::kQwen2 || r.boolean_or("use_sliding_window", false);
  if (window_in_use && r.has("sliding_window"))
    m.sliding_window = r.integer("sliding_window", kTokens);
  MW_RETURN_IF_ERROR(r.finish(false));
  return m;
}

Result<ModelSpec> load_model(const std::string& name_or_path) {
  if (const auto text = builtin_document("llm", name_or_path)) {
    return parse_hf_config(*text, "built-in " + name_or_path, name_or_path);
  }
  const std::filesystem::path path(name_or_path);
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) {
    const auto near = nearest_word(name_or_path, builtin_models());
    return Error{
        .where = "--model",
        .field = "model",
        .value = name_or_path,
        .rule = "is neither a built-in name nor a path that exists",
        .remedy = near ? "did you mean " + *near + "?" : "built-in: " + join(builtin_models())};
  }
  const std::filesystem::path file =
      std::filesystem::is_directory(path, ec) ? path / "config.json" : path;
  MW_ASSIGN_OR_RETURN(const std::string text, read_text_file(file.string()));
  std::string name =
      std::filesystem::is_directory(path, ec) ? path.filename().string() : path.stem().string();
  if (name.empty() || name == "config")
    name = std::filesystem::absolute(file, ec).parent_path().filename().string();
  return parse_hf_config(text, file.string(), name);
}

std::vector<std::string> builtin_models() { return builtin_names("llm"); }

}  // namespace meshwright
