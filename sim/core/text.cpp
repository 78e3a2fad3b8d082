// SPDX-License-Identifier: Apache-2.0
#include "sim/core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace meshwright {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

std::optional<std::string> nearest_word(const std::string& word,
                                        const std::vector<std::string>& choices) {
  constexpr size_t kTelling = 3;  // letters of an unfinished word: "a100" of "a100-80g"
  for (const std::string& choice : choices) {
    if (word.size() >= kTelling && choice.starts_with(word)) return choice;
  }
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& choice : choices) {
    std::vector<size_t> row(choice.size() + 1);
    for (size_t j = 0; j <= choice.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= choice.size(); ++j) {
        const size_t substitute = diagonal + (word[i - 1] == choice[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = choice;
    }
  }
  return best;
}

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

double four_digits(double x) { return std::stod(fmt::format("{:.4g}", x)); }

std::string show(Seconds t) {
  const double s = std::abs(t.v);
  if (s >= 1000.0) return fmt::format("{:.0f} s", t.v);
  if (s >= 1.0) return fmt::format("{:.3g} s", t.v);
  if (s >= 1e-3) return fmt::format("{:.3g} ms", t.v * 1e3);
  if (s == 0.0) return "0 s";
  return fmt::format("{:.3g} us", t.v * 1e6);
}

std::string show(Bytes n) {
  constexpr double kKiB = 1024.0;
  if (n.v >= kKiB * kKiB * kKiB) return fmt::format("{:.2f} GiB", n.v / (kKiB * kKiB * kKiB));
  if (n.v >= kKiB * kKiB) return fmt::format("{:.1f} MiB", n.v / (kKiB * kKiB));
  if (n.v >= kKiB) return fmt::format("{:.1f} KiB", n.v / kKiB);
  return fmt::format("{:.0f} B", n.v);
}

}  // namespace meshwright
