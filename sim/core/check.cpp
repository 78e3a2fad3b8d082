// SPDX-License-Identifier: Apache-2.0
#include "sim/core/check.h"

#include <cstdio>
#include <cstdlib>

namespace meshwright {

void check_failed(std::string_view condition, std::string_view detail, std::source_location where) {
  std::fprintf(stderr,
               "%s:%u: check failed: %.*s: %.*s\n",
               where.file_name(),
               static_cast<unsigned>(where.line()),
               static_cast<int>(condition.size()),
               condition.data(),
               static_cast<int>(detail.size()),
               detail.data());
  std::abort();
}

}  // namespace meshwright
