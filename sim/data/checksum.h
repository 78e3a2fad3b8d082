// XXH64: the checksum of a token file's header and payload.
//
// Why this one: it runs at memory speed, its test vectors are public, and every step is a bijection
// of its input word, so that a file with one changed 8-byte word can never keep its checksum.
// It guards against damage (a cut copy, a bad disk), not against a forger.
// Feeds: sim/data/token_file.h. Format: the xxHash specification (Y. Collet), XXH64 with seed 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace meshwright {

/// XXH64 (seed 0) over bytes that come in pieces; the pieces' borders do not matter.
class Checksum64 {
 public:
  Checksum64();

  /// Adds bytes. O(size), allocates nothing.
  void update(std::span<const std::byte> bytes);

  /// The checksum of everything added so far; more may be added afterwards.
  [[nodiscard]] uint64_t digest() const;

 private:
  std::array<uint64_t, 4> lanes_;
  std::array<std::byte, 32> pending_{};  ///< The first total_ % 32 bytes wait for a full stripe.
  uint64_t total_ = 0;
};

/// XXH64 (seed 0) of one piece.
[[nodiscard]] uint64_t checksum64(std::span<const std::byte> bytes);

}  // namespace meshwright
