// SPDX-License-Identifier: Apache-2.0
#include "sim/data/byte_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace meshwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ByteTokenizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "byte_tokenizer_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    output_ = folder_ + "/out.tok";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string input(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
    return folder_ + "/" + name;
  }
  std::string error(const std::vector<std::string>& inputs) const {
    const auto result = tokenize_files(inputs, output_, nullptr);
    return result ? "" : to_string(result.error());
  }
  std::vector<uint32_t> tokens() const {
    const auto file = TokenFile::open(output_);
    std::vector<uint32_t> result;
    for (int64_t i = 0; i < file->count(); ++i) result.push_back(file->token(i));
    return result;
  }
  std::vector<int> mask() const {
    const auto file = TokenFile::open(output_);
    std::vector<int> result;
    for (int64_t i = 0; i < file->count(); ++i) result.push_back(file->mask(i));
    return result;
  }

  std::string folder_;
  std::string output_;
};

TEST_F(ByteTokenizerTest, TextFilesAreDocuments) {
  const std::vector<std::string> inputs{input("a.txt", std::string("A\0\n", 3)),
                                        input("b", "\xff")};
  const auto result = tokenize_files(inputs, output_, nullptr);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->num_documents, 2);
  EXPECT_EQ(result->bytes_read, 4);
  EXPECT_EQ(result->file.vocab_size, 257U);
  EXPECT_FALSE(result->file.has_mask);
  EXPECT_THAT(tokens(), ElementsAre(65, 0, 10, 256, 255, 256));
}

TEST_F(ByteTokenizerTest, RowsGetALossMask) {
  const std::string rows =
      "{\"prompt\": \"hi\", \"response\": \"\\u00e9\"}\r\n"
      "  \n"
      "{\"response\": \"z\", \"id\": 7, \"prompt\": \"\"}";
  const std::vector<std::string> inputs{input("t.txt", "T"), input("rows.JSONL", rows)};
  const auto result = tokenize_files(inputs, output_, nullptr);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->num_documents, 3);
  EXPECT_TRUE(result->file.has_mask);
  EXPECT_THAT(tokens(), ElementsAre('T', 256, 'h', 'i', 0xc3, 0xa9, 256, 'z', 256));
  EXPECT_THAT(mask(), ElementsAre(1, 1, 0, 0, 1, 1, 1, 1, 1));
}

TEST_F(ByteTokenizerTest, LargeFilesComeInPiecesAndReportProgress) {
  std::string text(3'000'000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31);
  // A row that is longer than one read, too.
  const std::vector<std::string> inputs{
      input("big.txt", text),
      input("big.jsonl",
            "{\"prompt\":\"" + std::string(1'200'000, 'p') + "\",\"response\":\"r\"}\n")};
  std::vector<TokenizeProgress> seen;
  const auto result =
      tokenize_files(inputs, output_, [&](const TokenizeProgress& p) { seen.push_back(p); });
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->file.token_count, 3'000'001 + 1'200'002);
  ASSERT_GE(seen.size(), 5U);
  EXPECT_EQ(seen.front().input_index, 0U);
  EXPECT_LT(seen.front().bytes_done, seen.front().bytes_total);
  EXPECT_EQ(seen.back().input, inputs[1]);
  EXPECT_EQ(seen.back().bytes_done, seen.back().bytes_total);
  const auto file = TokenFile::open(output_);
  ASSERT_TRUE(file);
  for (int64_t i = 0; i < 3'000'000; i += 999) {
    ASSERT_EQ(file->token(i), static_cast<unsigned char>(text[static_cast<size_t>(i)]));
  }
  EXPECT_EQ(file->mask(4'200'000), 0);  // the last byte of the prompt
  EXPECT_EQ(file->token(4'200'001), uint32_t{'r'});
  EXPECT_EQ(file->mask(4'200'001), 1);
}

TEST_F(ByteTokenizerTest, BadLinesAreNamedWithTheirNumber) {
  const std::string good = "{\"prompt\": \"a\", \"response\": \"b\"}\n\n";
  auto third = [&](const std::string& line) { return error({input("r.jsonl", good + line)}); };
  EXPECT_EQ(third(""), "");
  EXPECT_THAT(third("{\"prompt\": \"a\", "), HasSubstr("r.jsonl:3: column = 17"));
  EXPECT_THAT(third("[1]"), HasSubstr("r.jsonl:3: the line is not a JSON object"));
  EXPECT_THAT(third("{\"prompt\": \"a\"}"), HasSubstr("r.jsonl:3: response: is missing"));
  EXPECT_THAT(third("{\"prompt\": 1, \"response\": \"b\"}"),
              HasSubstr("r.jsonl:3: prompt = number"));
  EXPECT_THAT(third("{\"prompt\": \"a\", \"response\": \"\"}"), HasSubstr("must not be empty"));
  EXPECT_THAT(third("{\"prompt\": \"\xff\", \"response\": \"b\"}"), HasSubstr("r.jsonl:3"));
  EXPECT_THAT(third(std::string(200'000, '[')), HasSubstr("r.jsonl:3"));
  EXPECT_THAT(error({input("blank.jsonl", "\n\n")}), HasSubstr("blank.jsonl: has no row"));
}

TEST_F(ByteTokenizerTest, UnusableInputsAreNamedAndLeaveNoOutput) {
  const std::string good = input("good.txt", "text");
  EXPECT_THAT(error({}), HasSubstr("at least one input"));
  EXPECT_THAT(error({good, folder_ + "/none.txt"}), HasSubstr("none.txt: cannot read"));
  EXPECT_THAT(error({good, input("empty.txt", "")}), HasSubstr("empty.txt: the input is empty"));
  EXPECT_THAT(error({good, folder_}), HasSubstr("is a folder"));
  EXPECT_THAT(error({"/dev/null"}), HasSubstr("not a regular file"));
  if (::geteuid() != 0) {  // root may read everything
    const std::string secret = input("secret.txt", "text");
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    EXPECT_THAT(error({secret}), HasSubstr("secret.txt: cannot read the input: Permission"));
  }
  EXPECT_FALSE(std::filesystem::exists(output_));
  const auto onto_itself = tokenize_files(std::vector{good}, good, nullptr);
  ASSERT_FALSE(onto_itself);
  EXPECT_THAT(to_string(onto_itself.error()), HasSubstr("both an input and the output"));
  EXPECT_EQ(std::filesystem::file_size(good), 4U);
}

}  // namespace
}  // namespace meshwright
