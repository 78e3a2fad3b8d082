// Strict reading of our own JSON documents: every key is known, every quantity carries its unit.
//
// For .cpp files only (nlohmann/json.hpp is heavy and stays out of public headers). Errors name the
// file, the JSON pointer, the value and the rule; syntax errors name line and column.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/enum_names.h"
#include "sim/core/result.h"
#include "sim/core/text.h"

namespace meshwright {

using Json = nlohmann::json;

/// Reads a whole file. Errors: missing, unreadable, a directory.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

/// Writes `text` to `path` through a temporary file and a rename, so that no reader sees half a
/// document.
[[nodiscard]] Result<Ok> write_text_file(const std::string& path, std::string_view text);

/// Parses JSON. `origin` names the document in messages, e.g. its path.
[[nodiscard]] Result<Json> parse_json(std::string_view text, const std::string& origin);

/// Limits of a number; both ends are allowed values.
struct Range {
  double min;
  double max;
};
inline constexpr Range kPositiveCount{1, 1e15};
inline constexpr Range kPositiveQuantity{1e-12, 1e24};
inline constexpr Range kNonNegative{0, 1e24};

/// Reads the members of one JSON object. The first error is kept and returned by finish(); after it
/// every read returns a default, so that a document is read as one straight list of fields.
class ObjectReader {
 public:
  /// `origin` is the document's name, `pointer` the JSON pointer of `object` inside it ("" for the
  /// root).
  ObjectReader(const Json& object, std::string origin, std::string pointer = "");

  [[nodiscard]] bool has(const std::string& key);
  int64_t integer(const std::string& key, Range range);
  int64_t integer_or(const std::string& key, int64_t fallback, Range range);
  double number(const std::string& key, Range range);
  double number_or(const std::string& key, double fallback, Range range);
  std::optional<double> optional_number(const std::string& key, Range range);
  bool boolean_or(const std::string& key, bool fallback);
  std::string text(const std::string& key);
  std::string text_or(const std::string& key, const std::string& fallback);
  std::vector<int> integers_or_empty(const std::string& key, Range range);
  /// The object under `key`, or an empty object (and an error when `required`).
  const Json& object(const std::string& key, bool required = true);
  /// The array under `key`, or an empty array (and an error when `required`).
  const Json& array(const std::string& key, bool required = true);
  /// One of `allowed`; the error lists them.
  std::string choice(const std::string& key,
                     const std::vector<std::string>& allowed,
                     const std::string& fallback);
  /// An enumerator by its word; required where `fallback` is nothing.
  template <class E, size_t N>
  E word(const std::string& key, const EnumNames<E, N>& names, std::optional<E> fallback = {}) {
    const std::string text =
        choice(key, names.list(), fallback ? std::string(names(*fallback)) : "");
    return names.parse(text).value_or(fallback.value_or(E{}));
  }

  /// Marks `key` as known without reading it (e.g. "source" notes).
  void ignore(const std::string& key) { known_.insert(key); }
  void fail(const std::string& key,
            const std::string& value,
            const std::string& rule,
            const std::string& remedy = "");
  [[nodiscard]] std::string pointer_to(const std::string& key) const;
  [[nodiscard]] const std::string& origin() const { return origin_; }

  /// The first error; with `reject_unknown`, a key that nobody read is one (its nearest known key
  /// is the remedy).
  [[nodiscard]] Result<Ok> finish(bool reject_unknown = true);

 private:
  const Json* find(const std::string& key, bool required);
  bool fail_without_unit(const std::string& wanted);

  const Json& object_;
  std::string origin_;
  std::string pointer_;
  std::set<std::string> known_;
  std::optional<Error> error_;
};

}  // namespace meshwright
