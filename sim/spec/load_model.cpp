// SPDX-License-Identifier: Apache-2.0
// Where a model comes from: a built-in name, a config.json, or a checkpoint's folder.
#include <filesystem>

#include "sim/core/json_reader.h"
#include "sim/spec/builtin_documents.h"
#include "sim/spec/model_spec.h"
#include "sim/spec/safetensors_header.h"

namespace meshwright {

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
  MW_ASSIGN_OR_RETURN(ModelSpec model, parse_hf_config(text, file.string(), name));
  if (std::filesystem::is_directory(path, ec) && has_safetensors(path.string())) {
    MW_RETURN_IF_ERROR(check_safetensors(path.string(), model));
  }
  return model;
}

std::vector<std::string> builtin_models() { return builtin_names("llm"); }

}  // namespace meshwright
