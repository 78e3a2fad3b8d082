// SPDX-License-Identifier: Apache-2.0
#include "sim/core/check.h"

#include <cstdio>
#include <cstdlib>

namespace meshwright {

void check_failed(const char* file, int line, std::string_view condition, std::string_view detail) {
  std::fprintf(stderr,
               "%s:%d: check failed: %.*s: %.*s\n",
               file,
               line,
               static_cast<int>(condition.size()),
               condition.data(),
               static_cast<int>(detail.size()),
               detail.data());
  std::abort();
}

}  // namespace meshwright
