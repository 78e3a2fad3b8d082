// The token file's 64-byte header as bytes: one place that knows offsets, versions and limits.
//
// Reads and feeds: sim/data/token_file.cpp (reader) and sim/data/token_writer.cpp (writer). The
// layout itself is described in sim/data/token_file.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "sim/core/result.h"
#include "sim/data/token_file.h"

namespace meshwright {

inline constexpr size_t kTokenHeaderBytes = 64;
inline constexpr uint32_t kTokenFileVersion = 1;

/// 2 if every token below vocab_size fits into 16 bits, else 4.
[[nodiscard]] constexpr uint32_t bytes_per_token_for(uint32_t vocab_size) {
  return vocab_size <= 65536 ? 2 : 4;
}

/// The header of a file with this content; `info.file_bytes` is not read.
[[nodiscard]] std::array<std::byte, kTokenHeaderBytes> encode_token_header(
    const TokenFileInfo& info);

/// Checks a header against the real length of its file. Does not look at the payload.
/// @param path   Named in errors only.
/// @param start  The first bytes of the file, min(64, file_bytes) of them.
/// @return  kBadInput: empty, no token file, another version, cut, damaged, or sizes that disagree.
[[nodiscard]] Result<TokenFileInfo> decode_token_header(const std::string& path,
                                                        std::span<const std::byte> start,
                                                        int64_t file_bytes);

}  // namespace meshwright
