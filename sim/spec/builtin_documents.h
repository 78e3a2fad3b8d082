// The documents of models/, carried inside the program so that it runs from anywhere.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The text of models/<folder>/<name>.json, or nothing. `folder` is "fits", "hardware", "llm",
/// "prices", "published" or "workloads".
[[nodiscard]] std::optional<std::string_view> builtin_document(std::string_view folder,
                                                               std::string_view name);

/// All names of a folder, sorted.
[[nodiscard]] std::vector<std::string> builtin_names(std::string_view folder);

}  // namespace meshwright
