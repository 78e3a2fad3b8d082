// SPDX-License-Identifier: Apache-2.0
#include "exec/model/operator_args.h"
#include "kernels/cross_entropy/cross_entropy.h"

namespace meshwright::operators {

void logit_max(const OperatorArgs& a) {
  kernels::logits_row_max(a.in_f32(0), a.out_f32(0), a.in(0).size(0), a.in(0).size(1));
}

// inputs row_max, labels; outputs logits, stats [2, T]: sums of exponentials, then target logits.
void logit_sum(const OperatorArgs& a) {
  const int64_t tokens = a.out(0).size(0);
  float* stats = a.out_f32(1);
  kernels::logits_exp_sum(a.out_f32(0),
                          a.in_f32(0),
                          a.in_i64(1),
                          a.graph().vocab_begin,
                          stats,
                          stats + tokens,
                          tokens,
                          a.out(0).size(1));
}

void cross_entropy(const OperatorArgs& a) {
  const int64_t tokens = a.out(0).size(0);
  const float* stats = a.in_f32(0);
  LossState& loss = a.ctx().loss;
  loss.sum += kernels::cross_entropy_finish(a.out_f32(0),
                                            stats,
                                            stats + tokens,
                                            a.in_i64(1),
                                            a.graph().vocab_begin,
                                            kIgnoreLabel,
                                            loss.grad_scale,
                                            tokens,
                                            a.out(0).size(1));
}

}  // namespace meshwright::operators
