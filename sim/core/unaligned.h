// Reading a number at any address of a mapped file.
#pragma once

#include <cstddef>
#include <cstring>

namespace meshwright {

template <class T>
[[nodiscard]] T load_unaligned(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace meshwright
