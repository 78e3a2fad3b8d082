// SPDX-License-Identifier: Apache-2.0
#include "sim/data/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sim/data/checksum.h"
#include "sim/data/token_writer.h"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

class TokenFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "token_file_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/data.tok";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string read() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  /// The text of open()'s error, or "" if the file was accepted.
  std::string refusal() const {
    const auto file = TokenFile::open(path_);
    return file ? "" : to_string(file.error());
  }
  size_t files_in_folder() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_;
  std::string path_;
};

const std::vector<uint32_t> kTokens{5, 0, 9, 3, 7, 1, 8};
const std::vector<uint8_t> kMask{1, 0, 1, 1, 0, 0, 1};

template <class T>
std::string with(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  return bytes;
}

/// The header's checksum made right again, as a hostile writer would.
std::string sealed(std::string bytes) {
  return with(bytes, 56, checksum64(std::as_bytes(std::span(bytes).first(56))));
}

TEST_F(TokenFileTest, RoundTripWithTwoByteTokens) {
  const auto written = write_token_file(path_, kTokens, 65536, std::nullopt);
  ASSERT_TRUE(written) << to_string(written.error());
  EXPECT_EQ(written->bytes_per_token, 2U);
  EXPECT_EQ(written->file_bytes, 64 + 7 * 2);
  EXPECT_EQ(std::filesystem::file_size(path_), 64U + 7 * 2);
  const auto file = TokenFile::open(path_);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->count(), 7);
  EXPECT_EQ(file->vocab_size(), 65536U);
  EXPECT_EQ(file->info().payload_checksum, written->payload_checksum);
  for (int64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(file->token(i), kTokens[static_cast<size_t>(i)]);
    EXPECT_EQ(file->mask(i), 1);
  }
}

TEST_F(TokenFileTest, RoundTripWithFourByteTokensAndMask) {
  std::vector<uint32_t> tokens = kTokens;
  tokens[2] = 65536;
  const auto written = write_token_file(path_, tokens, 65537, std::span(kMask));
  ASSERT_TRUE(written) << to_string(written.error());
  EXPECT_EQ(written->bytes_per_token, 4U);
  const auto file = TokenFile::open(path_);
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_TRUE(file->info().has_mask);
  for (int64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(file->token(i), tokens[static_cast<size_t>(i)]);
    EXPECT_EQ(file->mask(i), kMask[static_cast<size_t>(i)]);
  }
}

TEST_F(TokenFileTest, ManyPiecesGiveTheSameFileAsOne) {
  std::vector<uint32_t> tokens(1'500'000);
  std::vector<uint8_t> mask(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<uint32_t>(i * 7919 % 100'003);
    mask[i] = i % 3 == 0;
  }
  ASSERT_TRUE(write_token_file(path_, tokens, 100'003, std::span(mask)));
  const std::string whole = read();
  auto writer = TokenWriter::create(path_, 100'003, true);
  ASSERT_TRUE(writer);
  for (size_t at = 0; at < tokens.size(); at += 33'333) {
    const size_t n = std::min<size_t>(33'333, tokens.size() - at);
    ASSERT_TRUE(writer->append(std::span(tokens).subspan(at, n), std::span(mask).subspan(at, n)));
  }
  ASSERT_TRUE(writer->finish());
  EXPECT_TRUE(read() == whole);
  EXPECT_EQ(refusal(), "");
}

TEST_F(TokenFileTest, EveryTruncationIsRefused) {
  ASSERT_TRUE(write_token_file(path_, kTokens, 10, std::span(kMask)));
  const std::string whole = read();
  for (size_t length = 0; length < whole.size(); ++length) {
    write(whole.substr(0, length));
    const std::string error = refusal();
    ASSERT_THAT(error, HasSubstr(path_)) << length;
    ASSERT_THAT(error, HasSubstr(length == 0 ? "empty" : "cut")) << length;
  }
  write(whole.substr(0, 80));
  EXPECT_THAT(refusal(),
              HasSubstr("file size = 80 bytes: the file is cut: 7 tokens with a mask "
                        "take 85 bytes"));
  write(whole + "x");
  EXPECT_THAT(refusal(), HasSubstr("too long"));
  write(whole);
  EXPECT_EQ(refusal(), "");
}

TEST_F(TokenFileTest, EveryFlippedByteIsRefused) {
  ASSERT_TRUE(write_token_file(path_, kTokens, 10, std::span(kMask)));
  const std::string whole = read();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      write(bytes);
      ASSERT_NE(refusal(), "") << "byte " << at << " xor " << flip;
    }
  }
}

TEST_F(TokenFileTest, HostileHeadersAreRefused) {
  ASSERT_TRUE(write_token_file(path_, kTokens, 10, std::nullopt));
  const std::string whole = read();
  auto refused = [&](const std::string& bytes) {
    write(sealed(bytes));
    return refusal();
  };
  EXPECT_EQ(refused(whole), "");
  // 2 * 2^63 + 64 is 64 modulo 2^64: without an overflow check it would fit some file.
  for (const uint64_t count : {uint64_t{1} << 63, ~uint64_t{0}, (uint64_t{1} << 63) + 7}) {
    EXPECT_THAT(refused(with(whole, 24, count)), HasSubstr("no file can be that long")) << count;
  }
  EXPECT_THAT(refused(with(whole, 24, uint64_t{1} << 40)), HasSubstr("cut"));
  EXPECT_THAT(refused(with(whole, 24, uint64_t{0})), HasSubstr("token_count = 0"));
  EXPECT_THAT(refused(with(whole, 12, uint32_t{0})), HasSubstr("vocab_size = 0"));
  EXPECT_THAT(refused(with(whole, 16, uint32_t{0})), HasSubstr("bytes_per_token = 0"));
  EXPECT_THAT(refused(with(whole, 16, uint32_t{4})), HasSubstr("bytes_per_token = 4"));
  EXPECT_THAT(refused(with(whole, 20, uint32_t{2})), HasSubstr("has_mask = 2"));
  EXPECT_THAT(refused(with(whole, 40, uint64_t{1})), HasSubstr("reserved"));
  EXPECT_THAT(refused(with(whole, 8, uint32_t{2})), HasSubstr("version = 2"));
  // The payload is intact, but a token is out of the vocabulary that the header claims.
  EXPECT_THAT(refused(with(whole, 12, uint32_t{9})), HasSubstr("token 2 = 9"));
}

TEST_F(TokenFileTest, ABadTokenFarInTheFileIsNamed) {
  std::vector<uint32_t> tokens(200'000, 1);  // more than one block of the check
  tokens[190'000] = 9;
  ASSERT_TRUE(write_token_file(path_, tokens, 10, std::nullopt));
  write(sealed(with(read(), 12, uint32_t{9})));
  EXPECT_THAT(refusal(), HasSubstr("token 190000 = 9"));
}

TEST_F(TokenFileTest, MaskValuesOtherThanZeroAndOneAreRefusedOnReading) {
  ASSERT_TRUE(write_token_file(path_, kTokens, 10, std::span(kMask)));
  std::string bytes = read();
  bytes[64 + 14 + 3] = 2;
  const uint64_t sum = checksum64(std::as_bytes(std::span(bytes).subspan(64)));
  write(sealed(with(bytes, 32, sum)));
  EXPECT_THAT(refusal(), HasSubstr("mask 3 = 2"));
}

TEST_F(TokenFileTest, WhatIsNoTokenFileIsNamed) {
  EXPECT_THAT(refusal(), HasSubstr("No such file"));
  write("Once upon a time there was a text file that is longer than any header of ours is, so.");
  EXPECT_THAT(refusal(), HasSubstr("not a token file"));
  write("MW");
  EXPECT_THAT(refusal(), HasSubstr("cut"));
  EXPECT_THAT(to_string(TokenFile::open(folder_).error()), HasSubstr("is a folder"));
  ASSERT_EQ(::mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_THAT(to_string(TokenFile::open(folder_ + "/fifo").error()), HasSubstr("regular file"));
}

TEST_F(TokenFileTest, BadInputLeavesTheOldFileAndNoTemporary) {
  ASSERT_TRUE(write_token_file(path_, kTokens, 10, std::nullopt));
  const std::string before = read();
  const std::vector<uint8_t> short_mask{1, 0};
  const std::vector<uint8_t> bad_mask{1, 0, 1, 2, 0, 0, 1};
  auto error = [&](auto tokens, uint32_t vocab, auto mask) {
    const auto result = write_token_file(path_, tokens, vocab, mask);
    return result ? "" : to_string(result.error());
  };
  using Mask = std::optional<std::span<const uint8_t>>;
  EXPECT_THAT(error(kTokens, 9, Mask()), HasSubstr("token 2 = 9: must be below vocab_size (9)"));
  EXPECT_THAT(error(kTokens, 10, Mask(short_mask)), HasSubstr("mask length = 2: must be 7"));
  EXPECT_THAT(error(kTokens, 10, Mask(bad_mask)), HasSubstr("mask 3 = 2"));
  EXPECT_THAT(error(std::vector<uint32_t>{}, 10, Mask()), HasSubstr("token_count = 0"));
  EXPECT_THAT(error(kTokens, 0, Mask()), HasSubstr("vocab_size = 0"));
  EXPECT_EQ(read(), before);
  EXPECT_EQ(files_in_folder(), 1U);
  EXPECT_THAT(to_string(write_token_file(folder_, kTokens, 10, Mask()).error()),
              HasSubstr("is a folder"));
  EXPECT_THAT(to_string(write_token_file(folder_ + "/no/x", kTokens, 10, Mask()).error()),
              HasSubstr("No such file"));
}

TEST_F(TokenFileTest, AFailedWriteLeavesTheOldFileAndNoTemporary) {
  ASSERT_TRUE(write_token_file(path_, kTokens, 10, std::nullopt));
  const std::string before = read();
  struct rlimit limit {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit small { 4096, limit.rlim_max };
  auto* old = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto result = write_token_file(path_, std::vector<uint32_t>(5000), 10, std::nullopt);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, old);
  ASSERT_FALSE(result);
  EXPECT_THAT(to_string(result.error()), HasSubstr("cannot write the token file"));
  EXPECT_EQ(read(), before);
  EXPECT_EQ(files_in_folder(), 1U);
}

TEST_F(TokenFileTest, SamplesAreWindowsWithShiftedLabels) {
  ASSERT_TRUE(write_token_file(path_, kTokens, 10, std::span(kMask)));
  const auto file = TokenFile::open(path_);
  ASSERT_TRUE(file);
  // 7 tokens: the last label needs one more token than the inputs.
  EXPECT_EQ(file->num_samples(1), 6);
  EXPECT_EQ(file->num_samples(3), 2);
  EXPECT_EQ(file->num_samples(4), 1);
  EXPECT_EQ(file->num_samples(6), 1);
  EXPECT_EQ(file->num_samples(7), 0);
  std::vector<int64_t> ids(4, -7);
  std::vector<int64_t> labels(4, -7);
  file->read_sample(0, 3, ids.data(), labels.data(), -100);
  EXPECT_THAT(ids, ::testing::ElementsAre(5, 0, 9, -7));
  EXPECT_THAT(labels, ::testing::ElementsAre(-100, 9, 3, -7));
  file->read_sample(1, 3, ids.data(), labels.data(), -100);
  EXPECT_THAT(ids, ::testing::ElementsAre(3, 7, 1, -7));
  EXPECT_THAT(labels, ::testing::ElementsAre(-100, -100, 8, -7));
}

TEST_F(TokenFileTest, MovedFileKeepsItsMapping) {
  ASSERT_TRUE(write_token_file(path_, kTokens, 10, std::nullopt));
  auto opened = TokenFile::open(path_);
  ASSERT_TRUE(opened);
  TokenFile first = std::move(*opened);
  auto again = TokenFile::open(path_);
  ASSERT_TRUE(again);
  first = std::move(*again);
  EXPECT_EQ(first.token(6), 8U);
}

using TokenFileDeathTest = TokenFileTest;

TEST_F(TokenFileDeathTest, OutOfRangeAborts) {
  ASSERT_TRUE(write_token_file(path_, kTokens, 10, std::nullopt));
  const auto file = TokenFile::open(path_);
  ASSERT_TRUE(file);
  int64_t ids[3];
  int64_t labels[3];
  EXPECT_DEATH((void)file->token(7), "token 7 of 7");
  EXPECT_DEATH((void)file->num_samples(0), "seq_len = 0");
  EXPECT_DEATH(file->read_sample(2, 3, ids, labels, -100), "sample 2 of 2");
}

}  // namespace
}  // namespace meshwright
