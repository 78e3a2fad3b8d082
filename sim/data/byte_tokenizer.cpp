// SPDX-License-Identifier: Apache-2.0
#include "sim/data/byte_tokenizer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/data/token_writer.h"

namespace meshwright {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;

bool is_jsonl(std::string_view path) {
  constexpr std::string_view kExtension = ".jsonl";
  return path.size() >= kExtension.size() &&
         std::equal(kExtension.rbegin(), kExtension.rend(), path.rbegin(), [](char a, char b) {
           return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
         });
}

Error input_error(const std::string& path, std::string rule, std::string remedy) {
  return {.where = path, .rule = std::move(rule), .remedy = std::move(remedy)};
}

/// Size of a regular, non-empty file that is not the output.
Result<int64_t> input_size(const std::string& path, const struct stat* output) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return input_error(
        path, fmt::format("cannot read the input: {}", std::strerror(errno)), "check the path");
  }
  if (!S_ISREG(status.st_mode)) {
    return input_error(path,
                       S_ISDIR(status.st_mode) ? "is a folder" : "is not a regular file",
                       "name the text files one by one");
  }
  if (status.st_size == 0) {
    return input_error(path, "the input is empty", "leave it out or fill it");
  }
  if (output != nullptr && output->st_dev == status.st_dev && output->st_ino == status.st_ino) {
    return input_error(path, "is both an input and the output", "choose another output");
  }
  return static_cast<int64_t>(status.st_size);
}

/// Turns the bytes of one input into tokens; add() in pieces, then end() once.
class DocumentReader {
 public:
  DocumentReader(const std::string& path, bool with_mask, TokenWriter& writer)
      : path_(path), jsonl_(is_jsonl(path)), with_mask_(with_mask), writer_(writer) {}

  Result<Ok> add(std::string_view bytes) {
    if (!jsonl_) return put(bytes, 1, false);
    while (true) {
      const size_t newline = bytes.find('\n');
      line_ += bytes.substr(0, newline);
      if (newline == std::string_view::npos) return Ok{};
      MW_RETURN_IF_ERROR(end_line());
      bytes.remove_prefix(newline + 1);
    }
  }

  Result<Ok> end() {
    if (!jsonl_) {
      ++num_documents_;
      return put({}, 1, true);
    }
    MW_RETURN_IF_ERROR(end_line());
    if (num_documents_ > 0) return Ok{};
    return input_error(path_, "has no row, only blank lines", "leave it out or fill it");
  }

  [[nodiscard]] int64_t num_documents() const { return num_documents_; }

 private:
  Result<Ok> end_line() {
    ++line_number_;
    const std::string line = std::exchange(line_, {});
    if (line.find_first_not_of(" \t\r") == std::string::npos) return Ok{};
    nlohmann::json row;
    try {
      row = nlohmann::json::parse(line);
    } catch (const nlohmann::json::parse_error& e) {
      return bad_line("column", fmt::format("{}", e.byte), "the line is not a JSON document");
    }
    if (!row.is_object()) return bad_line("", "", "the line is not a JSON object");
    for (const char* key : {"prompt", "response"}) {
      const auto found = row.find(key);
      if (found == row.end()) return bad_line(key, "", "is missing");
      if (!found->is_string()) return bad_line(key, found->type_name(), "must be a string");
    }
    const auto& response = row["response"].get_ref<const std::string&>();
    if (response.empty()) return bad_line("response", "\"\"", "must not be empty");
    ++num_documents_;
    MW_RETURN_IF_ERROR(put(row["prompt"].get_ref<const std::string&>(), 0, false));
    return put(response, 1, true);
  }

  Error bad_line(std::string field, std::string value, std::string rule) const {
    return {.where = fmt::format("{}:{}", path_, line_number_),
            .field = std::move(field),
            .value = std::move(value),
            .rule = std::move(rule),
            .remedy = "write one {\"prompt\": \"...\", \"response\": \"...\"} a line"};
  }

  Result<Ok> put(std::string_view bytes, uint8_t mask, bool end_of_document) {
    tokens_.clear();
    for (const char c : bytes) tokens_.push_back(static_cast<unsigned char>(c));
    if (end_of_document) tokens_.push_back(kEndOfDocument);
    mask_.assign(with_mask_ ? tokens_.size() : 0, mask);
    return writer_.append(tokens_, mask_);
  }

  std::string path_;
  bool jsonl_;
  bool with_mask_;
  TokenWriter& writer_;
  std::string line_;
  int64_t line_number_ = 0;
  int64_t num_documents_ = 0;
  std::vector<uint32_t> tokens_;
  std::vector<uint8_t> mask_;
};

/// Feeds a whole file to `reader`; `on_bytes(n)` after each piece.
template <class OnBytes>
Result<Ok> read_file(const std::string& path, DocumentReader& reader, OnBytes on_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int failure = fd < 0 ? errno : 0;
  std::vector<char> piece(kReadBytes);
  Result<Ok> result = Ok{};
  while (failure == 0 && result) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) failure = errno;
    if (n <= 0) break;
    result = reader.add({piece.data(), static_cast<size_t>(n)});
    on_bytes(static_cast<int64_t>(n));
  }
  if (fd >= 0) ::close(fd);
  if (failure != 0) {
    return input_error(path,
                       fmt::format("cannot read the input: {}", std::strerror(failure)),
                       "check the path and its permissions");
  }
  return result ? reader.end() : result;
}

}  // namespace

Result<TokenizeSummary> tokenize_files(
    std::span<const std::string> inputs,
    const std::string& output,
    const std::function<void(const TokenizeProgress&)>& on_progress) {
  if (inputs.empty()) {
    return Error{.where = "tokenize", .field = "TEXT", .rule = "at least one input is needed"};
  }
  struct stat output_status {};
  const bool output_exists = ::stat(output.c_str(), &output_status) == 0;
  TokenizeProgress progress;
  for (const std::string& input : inputs) {
    MW_ASSIGN_OR_RETURN(const int64_t bytes,
                        input_size(input, output_exists ? &output_status : nullptr));
    progress.bytes_total += bytes;
  }

  const bool with_mask = std::any_of(inputs.begin(), inputs.end(), is_jsonl);
  MW_ASSIGN_OR_RETURN(TokenWriter writer, TokenWriter::create(output, kByteVocabSize, with_mask));
  TokenizeSummary summary;
  for (size_t i = 0; i < inputs.size(); ++i) {
    progress.input = inputs[i];
    progress.input_index = i;
    DocumentReader reader(inputs[i], with_mask, writer);
    MW_RETURN_IF_ERROR(read_file(inputs[i], reader, [&](int64_t bytes) {
      progress.bytes_done += bytes;
      if (on_progress) on_progress(progress);
    }));
    summary.num_documents += reader.num_documents();
  }
  summary.bytes_read = progress.bytes_done;
  MW_ASSIGN_OR_RETURN(summary.file, writer.finish());
  return summary;
}

}  // namespace meshwright
