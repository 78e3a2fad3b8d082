// SPDX-License-Identifier: Apache-2.0
#include "sim/data/token_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "sim/data/checksum.h"

namespace meshwright {
namespace {

constexpr std::string_view kMagic = "MWTOKENS";
constexpr const char* kMakeAgain = "copy the file again or make it with `meshwright tokenize`";

template <class T>
void put(std::span<std::byte> header, size_t offset, T value) {
  std::memcpy(header.data() + offset, &value, sizeof(value));
}

template <class T>
T get(std::span<const std::byte> header, size_t offset) {
  T value;
  std::memcpy(&value, header.data() + offset, sizeof(value));
  return value;
}

Error mistake(const std::string& path, std::string field, std::string value, std::string rule) {
  return {.where = path,
          .field = std::move(field),
          .value = std::move(value),
          .rule = std::move(rule),
          .remedy = kMakeAgain};
}

}  // namespace

std::array<std::byte, kTokenHeaderBytes> encode_token_header(const TokenFileInfo& info) {
  std::array<std::byte, kTokenHeaderBytes> header{};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  put<uint32_t>(header, 8, kTokenFileVersion);
  put<uint32_t>(header, 12, info.vocab_size);
  put<uint32_t>(header, 16, info.bytes_per_token);
  put<uint32_t>(header, 20, info.has_mask ? 1 : 0);
  put<uint64_t>(header, 24, static_cast<uint64_t>(info.token_count));
  put<uint64_t>(header, 32, info.payload_checksum);
  put<uint64_t>(header, 56, checksum64(std::span(header).first(56)));
  return header;
}

Result<TokenFileInfo> decode_token_header(const std::string& path,
                                          std::span<const std::byte> start,
                                          int64_t file_bytes) {
  if (file_bytes == 0) return mistake(path, "file size", "0 bytes", "the file is empty");
  const size_t magic_bytes = std::min(start.size(), kMagic.size());
  if (std::memcmp(start.data(), kMagic.data(), magic_bytes) != 0) {
    return mistake(path, "", "", "this is not a token file: it does not start with \"MWTOKENS\"");
  }
  if (start.size() < kTokenHeaderBytes) {
    return mistake(
        path,
        "file size",
        fmt::format("{} bytes", file_bytes),
        fmt::format("the file is cut: its header alone has {} bytes", kTokenHeaderBytes));
  }
  if (const auto version = get<uint32_t>(start, 8); version != kTokenFileVersion) {
    return mistake(path,
                   "version",
                   fmt::format("{}", version),
                   fmt::format("this program reads version {}", kTokenFileVersion));
  }
  const auto stored = get<uint64_t>(start, 56);
  if (const uint64_t found = checksum64(start.first(56)); found != stored) {
    return mistake(path,
                   "header checksum",
                   fmt::format("{:016x}", found),
                   fmt::format("the header is damaged: it should have {:016x}", stored));
  }

  TokenFileInfo info{.vocab_size = get<uint32_t>(start, 12),
                     .bytes_per_token = get<uint32_t>(start, 16),
                     .has_mask = get<uint32_t>(start, 20) != 0,
                     .payload_checksum = get<uint64_t>(start, 32),
                     .file_bytes = file_bytes};
  if (info.vocab_size == 0) return mistake(path, "vocab_size", "0", "must be at least 1");
  if (const uint32_t need = bytes_per_token_for(info.vocab_size); info.bytes_per_token != need) {
    return mistake(path,
                   "bytes_per_token",
                   fmt::format("{}", info.bytes_per_token),
                   fmt::format("must be {} for vocab_size {}", need, info.vocab_size));
  }
  if (const auto flag = get<uint32_t>(start, 20); flag > 1) {
    return mistake(path, "has_mask", fmt::format("{}", flag), "must be 0 or 1");
  }
  if (get<uint64_t>(start, 40) != 0 || get<uint64_t>(start, 48) != 0) {
    return mistake(path, "reserved bytes 40..55", "", "must be zero in version 1");
  }
  const auto count = get<uint64_t>(start, 24);
  if (count == 0) return mistake(path, "token_count", "0", "must be at least 1");
  const uint64_t each = info.bytes_per_token + (info.has_mask ? 1U : 0U);
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max() - kTokenHeaderBytes;
  if (count > kLargest / each) {
    return mistake(path, "token_count", fmt::format("{}", count), "no file can be that long");
  }
  const auto expected = static_cast<int64_t>(kTokenHeaderBytes + count * each);
  if (file_bytes != expected) {
    return mistake(path,
                   "file size",
                   fmt::format("{} bytes", file_bytes),
                   fmt::format("{}: {} tokens{} take {} bytes",
                               file_bytes < expected ? "the file is cut" : "the file is too long",
                               count,
                               info.has_mask ? " with a mask" : "",
                               expected));
  }
  info.token_count = static_cast<int64_t>(count);
  return info;
}

}  // namespace meshwright
