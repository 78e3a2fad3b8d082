// SPDX-License-Identifier: Apache-2.0
#include "sim/data/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "sim/data/checksum.h"
#include "sim/data/token_format.h"
#include "sim/core/unaligned.h"

namespace meshwright {
namespace {

// Checksum and range check walk the payload together in blocks that stay in the L2 cache.
constexpr size_t kBlockBytes = size_t{256} << 10;

/// Index of the first value > largest among `count` values, or nullopt.
template <class T>
std::optional<int64_t> first_above(const std::byte* at, int64_t count, uint32_t largest) {
  if (largest >= std::numeric_limits<T>::max()) return std::nullopt;
  uint32_t highest = 0;  // a branchless pass first: bad values are rare
  for (int64_t i = 0; i < count; ++i) {
    highest =
        std::max<uint32_t>(highest, load_unaligned<T>(at + i * static_cast<int64_t>(sizeof(T))));
  }
  if (highest <= largest) return std::nullopt;
  for (int64_t i = 0; i < count; ++i) {
    if (load_unaligned<T>(at + i * static_cast<int64_t>(sizeof(T))) > largest) return i;
  }
  return std::nullopt;
}

/// Adds `count` values to the checksum and looks for the first one above `largest`.
template <class T>
std::optional<int64_t> scan(const std::byte* at, int64_t count, uint32_t largest, Checksum64& sum) {
  constexpr auto kPerBlock = static_cast<int64_t>(kBlockBytes / sizeof(T));
  std::optional<int64_t> bad;
  for (int64_t done = 0; done < count; done += kPerBlock) {
    const int64_t now = std::min(kPerBlock, count - done);
    const std::byte* block = at + done * static_cast<int64_t>(sizeof(T));
    sum.update({block, static_cast<size_t>(now) * sizeof(T)});
    if (bad) continue;
    bad = first_above<T>(block, now, largest);
    if (bad) *bad += done;
  }
  return bad;
}

std::optional<Error> check_payload(const std::string& path,
                                   const std::byte* file,
                                   const TokenFileInfo& info) {
  Checksum64 sum;
  const std::byte* tokens = file + kTokenHeaderBytes;
  const std::byte* mask = tokens + info.token_count * info.bytes_per_token;
  const auto bad_token = info.bytes_per_token == 2
                             ? scan<uint16_t>(tokens, info.token_count, info.vocab_size - 1, sum)
                             : scan<uint32_t>(tokens, info.token_count, info.vocab_size - 1, sum);
  const auto bad_mask =
      info.has_mask ? scan<uint8_t>(mask, info.token_count, 1, sum) : std::nullopt;

  constexpr const char* kRemedy = "copy the file again or make it with `meshwright tokenize`";
  if (sum.digest() != info.payload_checksum) {
    return Error{.where = path,
                 .field = "payload checksum",
                 .value = fmt::format("{:016x}", sum.digest()),
                 .rule = fmt::format("the file is damaged: its tokens should have {:016x}",
                                     info.payload_checksum),
                 .remedy = kRemedy};
  }
  if (bad_token) {
    const std::byte* at = tokens + *bad_token * info.bytes_per_token;
    const uint32_t token =
        info.bytes_per_token == 2 ? load_unaligned<uint16_t>(at) : load_unaligned<uint32_t>(at);
    return Error{.where = path,
                 .field = fmt::format("token {}", *bad_token),
                 .value = fmt::format("{}", token),
                 .rule = fmt::format("must be below vocab_size ({})", info.vocab_size),
                 .remedy = kRemedy};
  }
  if (bad_mask) {
    return Error{.where = path,
                 .field = fmt::format("mask {}", *bad_mask),
                 .value = fmt::format("{}", load_unaligned<uint8_t>(mask + *bad_mask)),
                 .rule = "must be 0 or 1",
                 .remedy = kRemedy};
  }
  return std::nullopt;
}

}  // namespace

Result<TokenFile> TokenFile::open(const std::string& path) {
  auto refuse = [&path](std::string rule, std::string remedy) {
    return Error{.where = path, .rule = std::move(rule), .remedy = std::move(remedy)};
  };
  // O_NONBLOCK: a named pipe must be refused, not waited for. It has no effect on a regular file.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return refuse(fmt::format("cannot open the token file: {}", std::strerror(errno)),
                  "check the path, or make the file with `meshwright tokenize`");
  }
  struct stat status {};
  const bool known = ::fstat(fd, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return refuse(known && S_ISDIR(status.st_mode) ? "is a folder, not a token file"
                                                   : "is not a regular file",
                  "give the path of a file made by `meshwright tokenize`");
  }
  const auto bytes = static_cast<int64_t>(status.st_size);
  void* mapped = nullptr;
  if (bytes > 0) {
    mapped = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_SHARED, fd, 0);
  }
  const int map_errno = errno;
  ::close(fd);
  if (mapped == MAP_FAILED) {
    return refuse(fmt::format("cannot map {} bytes: {}", bytes, std::strerror(map_errno)),
                  "check the memory limits (ulimit -v)");
  }

  // Owns the mapping from here on, also on the error paths below.
  TokenFile file(static_cast<const std::byte*>(mapped), TokenFileInfo{.file_bytes = bytes});
  const size_t start = std::min(static_cast<size_t>(bytes), kTokenHeaderBytes);
  MW_ASSIGN_OR_RETURN(file.info_, decode_token_header(path, {file.mapped_, start}, bytes));
  if (auto error = check_payload(path, file.mapped_, file.info_)) return *error;
  return file;
}

TokenFile::TokenFile(TokenFile&& other) noexcept
    : mapped_(std::exchange(other.mapped_, nullptr)), info_(other.info_) {}

TokenFile& TokenFile::operator=(TokenFile&& other) noexcept {
  std::swap(mapped_, other.mapped_);
  std::swap(info_, other.info_);
  return *this;
}

TokenFile::~TokenFile() {
  if (mapped_ == nullptr) return;
  ::munmap(const_cast<std::byte*>(mapped_), static_cast<size_t>(info_.file_bytes));
}

uint32_t TokenFile::token(int64_t i) const {
  MW_CHECK(i >= 0 && i < count(), fmt::format("token {} of {}", i, count()));
  const std::byte* at = mapped_ + kTokenHeaderBytes + i * info_.bytes_per_token;
  return info_.bytes_per_token == 2 ? load_unaligned<uint16_t>(at) : load_unaligned<uint32_t>(at);
}

uint8_t TokenFile::mask(int64_t i) const {
  MW_CHECK(i >= 0 && i < count(), fmt::format("mask {} of {}", i, count()));
  if (!info_.has_mask) return 1;
  return load_unaligned<uint8_t>(mapped_ + kTokenHeaderBytes + count() * info_.bytes_per_token + i);
}

int64_t TokenFile::num_samples(int64_t seq_len) const {
  MW_CHECK(seq_len >= 1, fmt::format("seq_len = {}", seq_len));
  return (count() - 1) / seq_len;
}

void TokenFile::read_sample(
    int64_t sample, int64_t seq_len, int64_t* ids, int64_t* labels, int64_t ignore_label) const {
  MW_CHECK(sample >= 0 && sample < num_samples(seq_len),
           fmt::format("sample {} of {} (seq_len {})", sample, num_samples(seq_len), seq_len));
  const int64_t first = sample * seq_len;
  for (int64_t i = 0; i < seq_len; ++i) {
    ids[i] = token(first + i);
    labels[i] = mask(first + i + 1) != 0 ? token(first + i + 1) : ignore_label;
  }
}

}  // namespace meshwright
