// SPDX-License-Identifier: Apache-2.0
#include "sim/data/training_data.h"

#include <fmt/format.h>

namespace meshwright {

Result<TokenFile> open_training_data(const std::string& path, const Plan& plan) {
  MW_ASSIGN_OR_RETURN(TokenFile tokens, TokenFile::open(path));
  if (tokens.vocab_size() > plan.model().vocab_size) {
    return Error{
        .where = path,
        .field = "vocab_size",
        .value = std::to_string(tokens.vocab_size()),
        .rule = fmt::format(
            "exceeds the vocabulary of {} ({})", plan.model().name, plan.model().vocab_size),
        .remedy = "use a model with at least this vocabulary, or another tokenizer"};
  }
  const int64_t seq_len = plan.workload().seq_len;
  if (tokens.num_samples(seq_len) < 1) {
    return Error{
        .where = path,
        .field = "token_count",
        .value = std::to_string(tokens.count()),
        .rule = fmt::format("holds no whole sequence of {} tokens (and its last label)", seq_len),
        .remedy = "use more text, or plan with a smaller --seq-len"};
  }
  return tokens;
}

}  // namespace meshwright
