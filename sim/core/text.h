// Small text helpers of the parsers and tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/units.h"

namespace meshwright {

[[nodiscard]] std::vector<std::string> split(const std::string& text, char separator);

/// "a, b, c".
[[nodiscard]] std::string join(const std::vector<std::string>& words);

/// The entry of `choices` that begins with `word`, or is closest to it by edit distance and near
/// enough to be a slip.
[[nodiscard]] std::optional<std::string> nearest_word(const std::string& word,
                                                      const std::vector<std::string>& choices);

/// `x` to four significant digits: what a fitted constant is written with, since no data determine
/// more.
[[nodiscard]] double four_digits(double x);

/// For people: "1.23 s", "45.6 ms", "7.89 us".
[[nodiscard]] std::string show(Seconds t);

/// For people, binary: "1.23 GiB", "45.6 MiB", "789 B".
[[nodiscard]] std::string show(Bytes n);

}  // namespace meshwright
