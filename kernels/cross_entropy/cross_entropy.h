// Softmax cross-entropy over a vocabulary that may be sharded over tensor-parallel ranks, with one
// buffer.
//
//   loss = sum over rows of log(sum_j exp(l[j] - m)) - (l[label] - m),    m = max_j l[j]
//   dlogits = grad_scale * (softmax(l) - onehot(label))
//
// The call order, with what ranks exchange in between (nothing when the vocabulary is whole):
//   logits_row_max          all-reduce(max) of row_max
//   logits_exp_sum          all-reduce(sum) of sum_exp and target_logit
//   cross_entropy_finish
// The logits become exponentials and then gradients in place, so a rank holds rows * cols floats
// once. Each rank owns the columns [vocab_begin, vocab_begin + cols) of the vocabulary; a label is
// a global column.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// row_max [rows] = the largest of each row of logits [rows, cols]; -infinity if cols is 0 (an
/// empty shard).
void logits_row_max(const float* logits, float* row_max, std::int64_t rows, std::int64_t cols);

/// Overwrites logits_inout [rows, cols] with exp(l - row_max[row]), where row_max [rows] is that of
/// the whole vocabulary. sum_exp [rows] = the sum of this shard's columns; target_logit [rows] =
/// l[label] - row_max where this shard owns the label of labels [rows], else 0.
void logits_exp_sum(float* logits_inout,
                    const float* row_max,
                    const std::int64_t* labels,
                    std::int64_t vocab_begin,
                    float* sum_exp,
                    float* target_logit,
                    std::int64_t rows,
                    std::int64_t cols);

/// Overwrites exp_inout [rows, cols] with the gradient of grad_scale * loss; sum_exp and
/// target_logit [rows] are summed over the shards. A row whose label is ignore_label gets gradient
/// 0 and adds no loss.
///
/// @return the sum (not the mean) of the rows' losses, without grad_scale; every shard returns the
/// same.
double cross_entropy_finish(float* exp_inout,
                            const float* sum_exp,
                            const float* target_logit,
                            const std::int64_t* labels,
                            std::int64_t vocab_begin,
                            std::int64_t ignore_label,
                            float grad_scale,
                            std::int64_t rows,
                            std::int64_t cols);

}  // namespace meshwright::kernels
