// The constants of an operator model by name: what a fit varies and a document of models/fits
// holds.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace meshwright {

enum class ConstantKind {
  kFitted,      ///< Continuous, between its bounds.
  kPowerOfTwo,  ///< Chosen among the powers of two from `low` to `high`.
};

template <class Constants>
struct ModelConstant {
  const char* name;
  double Constants::*value;
  double start, low, high;
  ConstantKind kind = ConstantKind::kFitted;
};

/// Constants with the values of `by_name`; nothing when the names are not those of `model`.
template <class Constants>
[[nodiscard]] std::optional<Constants> constants_from(
    std::span<const ModelConstant<Constants>> model, const std::map<std::string, double>& by_name) {
  Constants result;
  for (const ModelConstant<Constants>& c : model) {
    const auto found = by_name.find(c.name);
    if (found == by_name.end()) return std::nullopt;
    result.*c.value = found->second;
  }
  if (by_name.size() != model.size()) return std::nullopt;
  return result;
}

}  // namespace meshwright
