// SPDX-License-Identifier: Apache-2.0
#include "sim/core/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace meshwright {
namespace {

std::string short_dump(const Json& value) {
  std::string text = value.dump();
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string line_and_column(std::string_view text, size_t byte) {
  byte = std::min(byte, text.size());
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i + 1 < byte; ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return fmt::format("line {}, column {}", line, column);
}

std::string number_text(double x) { return fmt::format("{:g}", x); }

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  std::error_code ec;
  const auto status = std::filesystem::status(path, ec);
  if (!std::filesystem::exists(status)) {
    return Error{.where = path, .rule = "no such file", .remedy = "check the path"};
  }
  if (std::filesystem::is_directory(status)) {
    return Error{.where = path, .rule = "is a directory, not a file"};
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return Error{.where = path, .rule = "cannot be read", .remedy = "check its permissions"};
  return text.str();
}

Result<Ok> write_text_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.flush();
    if (!out) {
      std::remove(temporary.c_str());
      return Error{.where = path,
                   .rule = "cannot be written",
                   .remedy = "check that the folder exists, is writable and has space"};
    }
  }
  std::error_code ec;
  std::filesystem::rename(temporary, path, ec);
  if (ec) return Error{.where = path, .rule = "cannot be written: " + ec.message()};
  return Ok{};
}

Result<Json> parse_json(std::string_view text, const std::string& origin) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...; last
    // read: '...'"
    const std::string_view what = e.what();
    const size_t at = what.find(": ");
    std::string reason(at == std::string_view::npos ? what : what.substr(at + 2));
    for (char& c : reason)
      c = c >= ' ' && c <= '~' ? c : '?';  // it quotes the file, which may be binary
    return Error{.where = origin,
                 .value = line_and_column(text, e.byte),
                 .rule = "is not valid JSON: " + reason};
  } catch (const Json::exception& e) {
    return Error{.where = origin, .rule = std::string("is not usable JSON: ") + e.what()};
  }
}

ObjectReader::ObjectReader(const Json& object, std::string origin, std::string pointer)
    : object_(object), origin_(std::move(origin)), pointer_(std::move(pointer)) {
  if (!object.is_object()) fail("", short_dump(object), "must be a JSON object");
}

std::string ObjectReader::pointer_to(const std::string& key) const {
  return origin_ + "#" + pointer_ + (key.empty() ? "" : "/" + key);
}

void ObjectReader::fail(const std::string& key,
                        const std::string& value,
                        const std::string& rule,
                        const std::string& remedy) {
  if (error_) return;
  error_ =
      Error{.where = pointer_to(key), .field = key, .value = value, .rule = rule, .remedy = remedy};
}

const Json* ObjectReader::find(const std::string& key, bool required) {
  known_.insert(key);
  if (!object_.is_object()) return nullptr;
  const auto it = object_.find(key);
  if (it == object_.end() || it->is_null()) {
    if (required && !fail_without_unit(key)) fail(key, "missing", "is required");
    return nullptr;
  }
  return &*it;
}

/// "bandwidth" where "bandwidth_GBps" is wanted: the quantity was written without its unit.
bool ObjectReader::fail_without_unit(const std::string& wanted) {
  for (const auto& [key, value] : object_.items()) {
    const bool bare =
        wanted.size() > key.size() + 1 && wanted.starts_with(key) && wanted[key.size()] == '_';
    if (!bare || !value.is_number() || known_.contains(key)) continue;
    fail(key, short_dump(value), "is a quantity without a unit", "write \"" + wanted + "\"");
    return true;
  }
  return false;
}

bool ObjectReader::has(const std::string& key) { return find(key, false) != nullptr; }

int64_t ObjectReader::integer(const std::string& key, Range range) {
  const Json* v = find(key, true);
  if (v == nullptr) return static_cast<int64_t>(range.min);
  const bool whole = v->is_number_integer() ||
                     (v->is_number_float() && std::floor(v->get<double>()) == v->get<double>());
  const double x = v->is_number() ? v->get<double>() : 0.0;
  if (!whole) {
    fail(key, short_dump(*v), "must be a whole number");
  } else if (!(x >= range.min && x <= range.max)) {
    fail(key,
         short_dump(*v),
         fmt::format("must be from {} to {}", number_text(range.min), number_text(range.max)));
  } else {
    return v->is_number_integer() ? v->get<int64_t>() : static_cast<int64_t>(x);
  }
  return static_cast<int64_t>(range.min);
}

int64_t ObjectReader::integer_or(const std::string& key, int64_t fallback, Range range) {
  return has(key) ? integer(key, range) : fallback;
}

double ObjectReader::number(const std::string& key, Range range) {
  const Json* v = find(key, true);
  if (v == nullptr) return range.min;
  if (!v->is_number()) {
    fail(key, short_dump(*v), "must be a number");
    return range.min;
  }
  const double x = v->get<double>();
  if (!(x >= range.min && x <= range.max)) {
    fail(key,
         short_dump(*v),
         fmt::format("must be from {} to {}", number_text(range.min), number_text(range.max)));
    return range.min;
  }
  return x;
}

double ObjectReader::number_or(const std::string& key, double fallback, Range range) {
  return has(key) ? number(key, range) : fallback;
}

std::optional<double> ObjectReader::optional_number(const std::string& key, Range range) {
  if (!has(key)) return std::nullopt;
  return number(key, range);
}

bool ObjectReader::boolean_or(const std::string& key, bool fallback) {
  const Json* v = find(key, false);
  if (v == nullptr) return fallback;
  if (!v->is_boolean()) {
    fail(key, short_dump(*v), "must be true or false");
    return fallback;
  }
  return v->get<bool>();
}

std::string ObjectReader::text(const std::string& key) {
  const Json* v = find(key, true);
  if (v == nullptr) return {};
  if (!v->is_string()) {
    fail(key, short_dump(*v), "must be a string");
    return {};
  }
  return v->get<std::string>();
}

std::string ObjectReader::text_or(const std::string& key, const std::string& fallback) {
  return has(key) ? text(key) : fallback;
}

std::vector<int> ObjectReader::integers_or_empty(const std::string& key, Range range) {
  std::vector<int> out;
  const Json* v = find(key, false);
  if (v == nullptr) return out;
  if (!v->is_array()) {
    fail(key, short_dump(*v), "must be an array of whole numbers");
    return out;
  }
  for (const Json& item : *v) {
    const bool good = item.is_number_integer() && item.get<double>() >= range.min &&
                      item.get<double>() <= range.max;
    if (!good) {
      fail(key,
           short_dump(item),
           fmt::format("must hold whole numbers from {} to {}",
                       number_text(range.min),
                       number_text(range.max)));
      return {};
    }
    out.push_back(item.get<int>());
  }
  return out;
}

const Json& ObjectReader::object(const std::string& key, bool required) {
  static const Json kEmpty = Json::object();
  const Json* v = find(key, required);
  if (v == nullptr) return kEmpty;
  if (!v->is_object()) {
    fail(key, short_dump(*v), "must be a JSON object");
    return kEmpty;
  }
  return *v;
}

const Json& ObjectReader::array(const std::string& key, bool required) {
  static const Json kEmpty = Json::array();
  const Json* v = find(key, required);
  if (v == nullptr) return kEmpty;
  if (!v->is_array()) {
    fail(key, short_dump(*v), "must be an array");
    return kEmpty;
  }
  return *v;
}

std::string ObjectReader::choice(const std::string& key,
                                 const std::vector<std::string>& allowed,
                                 const std::string& fallback) {
  const std::string word = text_or(key, fallback);
  if (std::find(allowed.begin(), allowed.end(), word) == allowed.end()) {
    const auto near = nearest_word(word, allowed);
    fail(key,
         '"' + word + '"',
         "must be one of " + join(allowed),
         near ? "did you mean " + *near + "?" : "");
    return allowed.front();
  }
  return word;
}

Result<Ok> ObjectReader::finish(bool reject_unknown) {
  if (!error_ && reject_unknown && object_.is_object()) {
    for (const auto& [key, value] : object_.items()) {
      if (known_.contains(key)) continue;
      const std::vector<std::string> known(known_.begin(), known_.end());
      for (const std::string& k : known) {
        if (fail_without_unit(k)) break;
      }
      const auto near = nearest_word(key, known);
      fail(key,
           short_dump(value),
           "is not a known key",
           near ? "did you mean \"" + *near + "\"?" : "known keys: " + join(known));
      break;
    }
  }
  if (error_) return *error_;
  return Ok{};
}

}  // namespace meshwright
