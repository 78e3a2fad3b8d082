// Token embedding over a vocabulary shard: a rank holds the rows [vocab_begin, vocab_begin +
// vocab_rows).
//
// A token that belongs to another rank gives a zero row, so that an all-reduce(sum) over the ranks
// completes the output. The backward adds straight into the gradient: no dense [vocab, cols]
// temporary.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// table [vocab_rows, cols]; ids [tokens] are global; out [tokens, cols] is written.
void embedding_forward(const float* table,
                       const std::int64_t* ids,
                       std::int64_t vocab_begin,
                       std::int64_t vocab_rows,
                       float* out,
                       std::int64_t tokens,
                       std::int64_t cols);

/// dtable_accum [vocab_rows, cols] += dout [tokens, cols], row by row in token order (so equal runs
/// give equal bits).
void embedding_backward(const float* dout,
                        const std::int64_t* ids,
                        std::int64_t vocab_begin,
                        std::int64_t vocab_rows,
                        float* dtable_accum,
                        std::int64_t tokens,
                        std::int64_t cols);

}  // namespace meshwright::kernels
