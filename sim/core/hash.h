// 64-bit FNV-1a: content hashes of plans and machine names. Detects edits, not attacks.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace meshwright {

[[nodiscard]] constexpr uint64_t fnv1a(std::string_view text,
                                       uint64_t hash = 0xcbf29ce484222325ull) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ull;
  }
  return hash;
}

/// 16 hexadecimal digits.
[[nodiscard]] inline std::string hex(uint64_t x) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(x));
  return text;
}

}  // namespace meshwright
