// Learned positions (GPT-2, OPT): a row of a table is added to each token by its place in its
// sequence.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// Token i of `tokens` stands at (first + i) mod seq_len and reads row `offset` + that place.
struct PositionRows {
  std::int64_t first = 0;
  std::int64_t seq_len = 1;
  std::int64_t offset = 0;
};

/// x [tokens, cols] += its tokens' rows of table.
void add_positions(
    float* x, const float* table, std::int64_t tokens, std::int64_t cols, PositionRows rows);

/// Adds dx [tokens, cols] to its tokens' rows of dtable_accum.
void positions_backward(const float* dx,
                        float* dtable_accum,
                        std::int64_t tokens,
                        std::int64_t cols,
                        PositionRows rows);

}  // namespace meshwright::kernels
