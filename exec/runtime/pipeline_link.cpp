// SPDX-License-Identifier: Apache-2.0
#include "exec/runtime/pipeline_link.h"

#include <ATen/ops/empty.h>

namespace meshwright {
namespace {

int tag(Direction direction, int micro_batch) {
  return 2 * micro_batch + static_cast<int>(direction);
}

/// The stage that a message of `direction` goes to; it comes from the opposite one.
int next_stage(int stage, Direction direction) {
  return direction == Direction::kForward ? stage + 1 : stage - 1;
}
int previous_stage(int stage, Direction direction) {
  return direction == Direction::kForward ? stage - 1 : stage + 1;
}

}  // namespace

PipelineLink::PipelineLink(const Plan& plan, int stage, Communicator& peers)
    : peers_(peers),
      stage_(stage),
      tokens_(plan.tokens_per_micro_batch() / (plan.layout().sp ? plan.layout().tp : 1)),
      width_(plan.model().d_model) {}

at::Tensor PipelineLink::recv(Direction direction, int micro_batch) {
  at::Tensor t = at::empty({tokens_, width_});
  peers_.recv(t, previous_stage(stage_, direction), tag(direction, micro_batch));
  return t;
}

void PipelineLink::send(Direction direction, int micro_batch, const at::Tensor& t) {
  Pending& pending = pending_[static_cast<int>(direction)];
  if (pending.valid()) pending.wait();
  pending = peers_.send_async(t, next_stage(stage_, direction), tag(direction, micro_batch));
}

void PipelineLink::finish_sends() {
  for (Pending& p : pending_) {
    if (p.valid()) p.wait();
  }
}

}  // namespace meshwright
