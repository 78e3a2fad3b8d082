// MW_CHECK: a broken promise between our own functions prints the values and aborts, in Release
// too.
//
// A user's mistake is never a check: it is a value, see sim/core/result.h.
#pragma once

#include <string>
#include <string_view>

namespace meshwright {

/// Prints "file:line: check failed: <condition>: <detail>" to stderr and aborts.
[[noreturn]] void check_failed(const char* file,
                               int line,
                               std::string_view condition,
                               std::string_view detail);

}  // namespace meshwright

/// MW_CHECK(condition) or MW_CHECK(condition, detail): `detail` is a std::string built only on
/// failure. (Not std::source_location: clang 14, whose clang-tidy reads this, has none.)
#define MW_CHECK(condition, ...)                                                            \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      ::meshwright::check_failed(__FILE__, __LINE__, #condition, std::string{__VA_ARGS__}); \
    }                                                                                       \
  } while (false)
