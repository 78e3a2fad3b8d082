// The token file: what `meshwright tokenize` writes and every rank of `meshwright run` reads.
//
// Why an own file: tokens are mapped, not loaded, so N ranks of one machine share one copy; and a
// cut, damaged or wrong file is refused before a step is taken, with its name and what is wrong.
// Reads: the file. Feeds: exec/data. Writer: sim/data/token_writer.h. Never includes torch.
//
// Layout, little-endian: a 64-byte header, `token_count` tokens of 2 bytes (vocab_size <= 65536) or
// 4 bytes, then, if has_mask, one byte of 0 or 1 for each token (1: the token counts in the loss).
//    0 "MWTOKENS"   8 u32 version   12 u32 vocab_size   16 u32 bytes_per_token   20 u32 has_mask
//   24 u64 token_count   32 u64 XXH64 of the payload   40 16 bytes of zero   56 u64 XXH64 of 0..55
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/core/result.h"

namespace meshwright {

/// What a token file says about itself.
struct TokenFileInfo {
  uint32_t vocab_size = 0;        ///< Every token is below it; >= 1.
  uint32_t bytes_per_token = 0;   ///< 2 or 4.
  int64_t token_count = 0;        ///< >= 1.
  bool has_mask = false;          ///< Without a mask every token counts in the loss.
  uint64_t payload_checksum = 0;  ///< XXH64 of tokens and mask: names the data of a run.
  int64_t file_bytes = 0;
};

/// Writes `path` in one go: into a temporary neighbour, fsync, rename, so that a reader sees the
/// old file or the whole new one. For data larger than memory use TokenWriter
/// (sim/data/token_writer.h).
///
/// @param loss_mask  0 or 1 for each token, as long as `tokens`; nullopt: every token counts.
/// @return  kBadInput: no tokens, a token >= vocab_size, a mask of another length or with another
///          value, or a path that cannot be written. A failed call leaves `path` as it was.
[[nodiscard]] Result<TokenFileInfo> write_token_file(
    const std::string& path,
    std::span<const uint32_t> tokens,
    uint32_t vocab_size,
    std::optional<std::span<const uint8_t>> loss_mask);

/// A checked, read-only, memory-mapped token file. Movable; const calls are thread-safe.
/// The file must not be cut while it is open: reading past its new end raises SIGBUS.
class TokenFile {
 public:
  /// Maps and checks the whole file (one pass: checksum, every token, every mask byte).
  /// @return  kBadInput naming file, field, value, rule and remedy for a path that is missing, a
  ///          folder, empty, no token file, of another version, cut, too long or damaged.
  [[nodiscard]] static Result<TokenFile> open(const std::string& path);

  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&& other) noexcept;
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;
  ~TokenFile();

  [[nodiscard]] const TokenFileInfo& info() const { return info_; }
  [[nodiscard]] int64_t count() const { return info_.token_count; }
  [[nodiscard]] uint32_t vocab_size() const { return info_.vocab_size; }

  /// Token i, 0 <= i < count().
  [[nodiscard]] uint32_t token(int64_t i) const;
  /// 1 if token i counts in the loss, else 0; 1 where the file has no mask.
  [[nodiscard]] uint8_t mask(int64_t i) const;

  /// Number of samples of `seq_len` >= 1 inputs. Sample s reads tokens s*seq_len ... (s+1)*seq_len:
  /// one more than seq_len, for the last label. Inputs of two samples never overlap; a rest too
  /// short for a sample is left out.
  [[nodiscard]] int64_t num_samples(int64_t seq_len) const;

  /// Writes seq_len inputs and labels of sample 0 <= s < num_samples(seq_len). Label i is the token
  /// after input i, or `ignore_label` where that token's mask is 0. O(seq_len), allocates nothing.
  void read_sample(
      int64_t sample, int64_t seq_len, int64_t* ids, int64_t* labels, int64_t ignore_label) const;

 private:
  TokenFile(const std::byte* mapped, TokenFileInfo info) : mapped_(mapped), info_(info) {}

  const std::byte* mapped_ = nullptr;  ///< The whole file; null after a move.
  TokenFileInfo info_;
};

}  // namespace meshwright
