// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "exec/model/operator_args.h"
#include "kernels/dropout/dropout.h"
#include "kernels/embedding/embedding.h"
#include "kernels/position/position.h"
#include "kernels/random/tensor_key.h"

namespace meshwright::operators {
namespace {

/// First of the tokens that a rank holds between tensor-parallel regions, in all of the run.
int64_t first_token(const OperatorArgs& a, int64_t tokens) {
  const OperatorContext& c = a.ctx();
  const int64_t whole = c.batches.first_sample(c.step, c.micro_batch) * c.graph.seq_len;
  return whole + (c.graph.sequence_shards ? c.tp.rank() * tokens : 0);
}

kernels::PositionRows position_rows(const OperatorArgs& a, int64_t tokens) {
  const ModelGraph& g = a.graph();
  return {.first = first_token(a, tokens), .seq_len = g.seq_len, .offset = g.position_offset};
}

uint64_t dropout_site(int block, ParamSlot output_of) {
  const char* part = output_of == ParamSlot::kTable     ? "embedding"
                     : output_of == ParamSlot::kAttnOut ? "attention"
                                                        : "feed_forward";
  return kernels::tensor_key("dropout." + std::to_string(block) + "." + part);
}

}  // namespace

void load_ids(const OperatorArgs& a) {
  a.ctx().batches.read(a.ctx().step, a.ctx().micro_batch, a.out_i64(0), nullptr);
}

void load_labels(const OperatorArgs& a) {
  a.ctx().batches.read(a.ctx().step, a.ctx().micro_batch, nullptr, a.out_i64(0));
}

void embedding(const OperatorArgs& a) {
  const ModelGraph& g = a.graph();
  kernels::embedding_forward(a.weight(),
                             a.in_i64(0),
                             g.vocab_begin,
                             g.vocab_rows,
                             a.out_f32(0),
                             a.out(0).size(0),
                             a.out(0).size(1));
}

void embedding_backward(const OperatorArgs& a) {
  const ModelGraph& g = a.graph();
  kernels::embedding_backward(a.in_f32(0),
                              a.in_i64(1),
                              g.vocab_begin,
                              g.vocab_rows,
                              a.grad_f32(),
                              a.in(0).size(0),
                              a.in(0).size(1));
}

void position(const OperatorArgs& a) {
  const int64_t tokens = a.out(0).size(0);
  kernels::add_positions(
      a.out_f32(0), a.weight(), tokens, a.out(0).size(1), position_rows(a, tokens));
}

void position_backward(const OperatorArgs& a) {
  const int64_t tokens = a.in(0).size(0);
  kernels::positions_backward(
      a.in_f32(0), a.grad_f32(), tokens, a.in(0).size(1), position_rows(a, tokens));
}

void dropout(const OperatorArgs& a) {
  const at::Tensor& x = a.out(0);
  const int64_t first = first_token(a, x.size(0)) * x.size(1);
  kernels::dropout_forward(a.out_f32(0),
                           a.out(1).mutable_data_ptr<uint8_t>(),
                           x.numel(),
                           static_cast<uint64_t>(first),
                           a.ctx().seed,
                           dropout_site(a.ctx().block, a.slot()),
                           a.ctx().dropout);
}

// mask, in place on the gradient; or gradient, mask -> what is kept of it.
void dropout_backward(const OperatorArgs& a) {
  const bool in_place = a.num_inputs() == 1;
  kernels::dropout_backward(in_place ? a.out_f32(0) : a.in_f32(0),
                            a.in(in_place ? 0 : 1).const_data_ptr<uint8_t>(),
                            a.out_f32(0),
                            a.out(0).numel(),
                            a.ctx().dropout);
}

}  // namespace meshwright::operators
