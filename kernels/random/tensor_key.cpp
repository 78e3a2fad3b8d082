// SPDX-License-Identifier: Apache-2.0
// Not std::hash: that one may differ between libraries and even between runs.
#include "kernels/random/tensor_key.h"

namespace meshwright::kernels {

std::uint64_t tensor_key(std::string_view global_name) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : global_name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3U;
  }
  return hash;
}

}  // namespace meshwright::kernels
