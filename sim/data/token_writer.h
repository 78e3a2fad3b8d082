// Writes a token file piece by piece, so that a corpus larger than memory can be tokenized.
//
// Reads: tokens in any pieces. Feeds: a file for sim/data/token_file.h. Why a temporary neighbour,
// fsync and rename: a crash, a full disk or Ctrl-C leaves the old file or none, never half of one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/data/checksum.h"
#include "sim/data/token_file.h"

namespace meshwright {

/// One token file in the making. Without a finish() the destructor removes what was written.
/// Not thread-safe. Tokens go to disk at once; a mask is kept in memory (1 byte a token) until
/// finish(), because it follows the tokens.
class TokenWriter {
 public:
  /// Opens the temporary file beside `path`.
  /// @return  kBadInput: vocab_size 0, `path` is a folder or a device, or its folder is not
  /// writable.
  [[nodiscard]] static Result<TokenWriter> create(const std::string& path,
                                                  uint32_t vocab_size,
                                                  bool has_mask);

  TokenWriter(TokenWriter&& other) noexcept;
  TokenWriter& operator=(TokenWriter&&) = delete;
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;
  ~TokenWriter();

  /// Adds tokens; `mask` is empty for a writer without mask, else as long as `tokens`.
  /// @return  kBadInput: a token >= vocab_size, a mask value other than 0 and 1, or a failed write.
  Result<Ok> append(std::span<const uint32_t> tokens, std::span<const uint8_t> mask);

  /// Completes the file and gives it its name. Call once. kBadInput: no tokens, a failed write.
  [[nodiscard]] Result<TokenFileInfo> finish();

 private:
  TokenWriter(std::string path, std::string temporary, int fd, TokenFileInfo info);
  Result<Ok> write_buffer();
  Result<Ok> write_all(std::span<const std::byte> bytes);

  std::string path_;
  std::string temporary_;  ///< Empty once it was renamed or given away.
  int fd_ = -1;
  TokenFileInfo info_;
  Checksum64 sum_;
  std::vector<std::byte> buffer_;
  std::vector<uint8_t> mask_;
};

}  // namespace meshwright
