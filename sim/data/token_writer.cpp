// SPDX-License-Identifier: Apache-2.0
#include "sim/data/token_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "sim/data/token_format.h"

namespace meshwright {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

Error write_error(const std::string& path, const char* what, int error_number) {
  return {.where = path,
          .rule = fmt::format("cannot {}: {}", what, std::strerror(error_number)),
          .remedy = error_number == ENOSPC || error_number == EDQUOT
                        ? "free some space or write to another disk"
                        : "check that the folder exists and can be written"};
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<TokenWriter> TokenWriter::create(const std::string& path,
                                        uint32_t vocab_size,
                                        bool has_mask) {
  if (vocab_size == 0) {
    return Error{.where = path, .field = "vocab_size", .value = "0", .rule = "must be at least 1"};
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return Error{.where = path,
                 .rule = S_ISDIR(status.st_mode) ? "is a folder" : "is not a regular file",
                 .remedy = "give the path of the file to write"};
  }
  static std::atomic<unsigned> counter{0};
  const std::string temporary = fmt::format("{}.tmp-{}-{}", path, ::getpid(), ++counter);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return write_error(path, "create the token file", errno);
  TokenWriter writer(path,
                     temporary,
                     fd,
                     {.vocab_size = vocab_size,
                      .bytes_per_token = bytes_per_token_for(vocab_size),
                      .has_mask = has_mask});
  // The place of the header; the real one is written last, when count and checksum are known.
  const std::array<std::byte, kTokenHeaderBytes> blank{};
  MW_RETURN_IF_ERROR(writer.write_all(blank));
  return writer;
}

TokenWriter::TokenWriter(std::string path, std::string temporary, int fd, TokenFileInfo info)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd), info_(info) {
  buffer_.reserve(kBufferBytes);
}

TokenWriter::TokenWriter(TokenWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      info_(other.info_),
      sum_(other.sum_),
      buffer_(std::move(other.buffer_)),
      mask_(std::move(other.mask_)) {}

TokenWriter::~TokenWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<Ok> TokenWriter::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return write_error(path_, "write the token file", errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return Ok{};
}

Result<Ok> TokenWriter::write_buffer() {
  sum_.update(buffer_);
  MW_RETURN_IF_ERROR(write_all(buffer_));
  buffer_.clear();
  return Ok{};
}

Result<Ok> TokenWriter::append(std::span<const uint32_t> tokens, std::span<const uint8_t> mask) {
  MW_CHECK(fd_ >= 0, "append after finish");
  if (mask.size() != (info_.has_mask ? tokens.size() : 0)) {
    return Error{
        .where = path_,
        .field = "mask length",
        .value = fmt::format("{}", mask.size()),
        .rule = fmt::format("must be {}, one for each token", info_.has_mask ? tokens.size() : 0)};
  }
  const auto bad_mask = std::find_if(mask.begin(), mask.end(), [](uint8_t m) { return m > 1; });
  if (bad_mask != mask.end()) {
    return Error{.where = path_,
                 .field = fmt::format("mask {}", info_.token_count + (bad_mask - mask.begin())),
                 .value = fmt::format("{}", *bad_mask),
                 .rule = "must be 0 or 1"};
  }
  for (const uint32_t token : tokens) {
    if (token >= info_.vocab_size) {
      return Error{.where = path_,
                   .field = fmt::format("token {}", info_.token_count),
                   .value = fmt::format("{}", token),
                   .rule = fmt::format("must be below vocab_size ({})", info_.vocab_size)};
    }
    // Little-endian (checked in checksum.cpp): the low bytes come first.
    const auto* bytes = reinterpret_cast<const std::byte*>(&token);
    buffer_.insert(buffer_.end(), bytes, bytes + info_.bytes_per_token);
    ++info_.token_count;
    if (buffer_.size() + sizeof(token) > kBufferBytes) MW_RETURN_IF_ERROR(write_buffer());
  }
  mask_.insert(mask_.end(), mask.begin(), mask.end());
  return Ok{};
}

Result<TokenFileInfo> TokenWriter::finish() {
  MW_CHECK(fd_ >= 0, "finish called twice");
  if (info_.token_count == 0) {
    return Error{.where = path_,
                 .field = "token_count",
                 .value = "0",
                 .rule = "must be at least 1",
                 .remedy = "give at least one token"};
  }
  MW_RETURN_IF_ERROR(write_buffer());
  const auto mask = std::as_bytes(std::span(mask_));
  sum_.update(mask);
  MW_RETURN_IF_ERROR(write_all(mask));
  info_.payload_checksum = sum_.digest();
  info_.file_bytes =
      static_cast<int64_t>(kTokenHeaderBytes) +
      info_.token_count * static_cast<int64_t>(info_.bytes_per_token + (info_.has_mask ? 1U : 0U));

  if (::lseek(fd_, 0, SEEK_SET) != 0) return write_error(path_, "write the header", errno);
  MW_RETURN_IF_ERROR(write_all(encode_token_header(info_)));
  if (::fsync(fd_) != 0) return write_error(path_, "flush the token file", errno);
  if (::close(std::exchange(fd_, -1)) != 0) return write_error(path_, "close the file", errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return write_error(path_, "rename the finished file", errno);
  }
  temporary_.clear();
  // The new name itself survives a power cut only once its folder is on disk, too.
  const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return info_;
}

Result<TokenFileInfo> write_token_file(const std::string& path,
                                       std::span<const uint32_t> tokens,
                                       uint32_t vocab_size,
                                       std::optional<std::span<const uint8_t>> loss_mask) {
  MW_ASSIGN_OR_RETURN(TokenWriter writer,
                      TokenWriter::create(path, vocab_size, loss_mask.has_value()));
  MW_RETURN_IF_ERROR(writer.append(tokens, loss_mask.value_or(std::span<const uint8_t>{})));
  return writer.finish();
}

}  // namespace meshwright
