// SPDX-License-Identifier: Apache-2.0
#include "sim/core/result.h"

namespace meshwright {

std::string to_string(const Error& error) {
  std::string line = error.where;
  auto append = [&line](std::string_view separator, const std::string& part) {
    if (part.empty()) return;
    if (!line.empty()) line += separator;
    line += part;
  };
  append(": ", error.field);
  append(error.field.empty() ? ": " : " = ", error.value);
  append(": ", error.rule);
  append("; ", error.remedy);
  return line;
}

}  // namespace meshwright
