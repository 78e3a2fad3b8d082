// Names of an enumerator's values, in their order, read and written by one table.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// The words by which a person writes an enum E whose values count from 0.
template <class E, size_t N>
struct EnumNames {
  std::array<std::string_view, N> words;

  [[nodiscard]] constexpr std::string_view operator()(E e) const {
    return words[static_cast<size_t>(e)];
  }
  [[nodiscard]] constexpr std::optional<E> parse(std::string_view word) const {
    for (size_t i = 0; i < N; ++i) {
      if (words[i] == word) return static_cast<E>(i);
    }
    return std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> list() const { return {words.begin(), words.end()}; }
};

}  // namespace meshwright
