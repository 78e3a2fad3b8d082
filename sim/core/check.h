// MW_CHECK: a broken promise between our own functions prints the values and aborts, in Release
// too.
//
// A user's mistake is never a check: it is a value, see sim/core/result.h.
#pragma once

#include <source_location>
#include <string>
#include <string_view>

namespace meshwright {

/// Prints "file:line: check failed: <condition>: <detail>" to stderr and aborts.
[[noreturn]] void check_failed(std::string_view condition,
                               std::string_view detail,
                               std::source_location where = std::source_location::current());

}  // namespace meshwright

/// MW_CHECK(condition) or MW_CHECK(condition, detail): `detail` is a std::string built only on
/// failure.
#define MW_CHECK(condition, ...)                                                        \
  do {                                                                                  \
    if (!(condition)) ::meshwright::check_failed(#condition, std::string{__VA_ARGS__}); \
  } while (false)
