// PipelineLink: activations and gradients between neighbouring pipeline stages.
//
// A send is started and its tensor held until the next send of the same direction, or the end of
// the step; the memory replay keeps it alive for exactly as long. A message is named by
// (micro-batch, direction), so nothing depends on the order in which a schedule lets the two
// directions pass each other.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "exec/comm/communicator.h"
#include "sim/plan/plan.h"
#include "sim/schedule/program.h"

namespace meshwright {

/// One rank's ends. Not thread-safe.
class PipelineLink {
 public:
  /// `peers` holds the ranks at the same place of every stage, in stage order.
  PipelineLink(const Plan& plan, int stage, Communicator& peers);

  /// Waits for the message: [tokens of a micro-batch, or of a sequence-parallel shard, D].
  [[nodiscard]] at::Tensor recv(Direction direction, int micro_batch);
  /// Ends the send before, then starts this one; the tensor must not be written any more.
  void send(Direction direction, int micro_batch, const at::Tensor& t);
  void finish_sends();

 private:
  Communicator& peers_;
  int stage_;
  int64_t tokens_;
  int64_t width_;
  Pending pending_[2];
};

}  // namespace meshwright
