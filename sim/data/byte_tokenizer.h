// `meshwright tokenize`: text files become one token file, one token a byte.
//
// Why bytes: no vocabulary file to fetch, every text is representable, and a run can start from any
// file at hand. Reads: plain text, and .jsonl rows for supervised fine-tuning. Feeds:
// sim/data/token_file.h. What it ignores: a byte vocabulary needs about four times the tokens of a
// trained one, so token counts here are not those of a published model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "sim/core/result.h"
#include "sim/data/token_file.h"

namespace meshwright {

inline constexpr uint32_t kEndOfDocument = 256;  ///< Follows every document.
inline constexpr uint32_t kByteVocabSize = 257;  ///< 256 bytes and the end of a document.

/// How far tokenize_files has come; called about once a MiB and at the end of each input.
struct TokenizeProgress {
  std::string input;        ///< The file being read.
  size_t input_index = 0;   ///< 0-based, in the order given.
  int64_t bytes_done = 0;   ///< Over all inputs.
  int64_t bytes_total = 0;  ///< Over all inputs, from their sizes at the start.
};

/// What was written.
struct TokenizeSummary {
  TokenFileInfo file;
  int64_t num_documents = 0;  ///< A text file is one document, a .jsonl row is one document.
  int64_t bytes_read = 0;
};

/// Tokenizes `inputs` in order into `output` (kByteVocabSize tokens).
///
/// A name ending in .jsonl is read as rows {"prompt": "...", "response": "..."}, other keys and
/// blank lines are ignored; the prompt's tokens get loss mask 0, the response's and the end get 1.
/// Any other file is one text document with mask 1. The file has a mask if one input is .jsonl.
///
/// @param on_progress  May be empty.
/// @return  kBadInput naming the file (and line): no inputs, missing, unreadable, a folder, empty,
/// a
///          row that is not JSON or lacks a string, an empty response, or an output that cannot be
///          written or is one of the inputs. A failed call leaves `output` as it was.
[[nodiscard]] Result<TokenizeSummary> tokenize_files(
    std::span<const std::string> inputs,
    const std::string& output,
    const std::function<void(const TokenizeProgress&)>& on_progress);

}  // namespace meshwright
