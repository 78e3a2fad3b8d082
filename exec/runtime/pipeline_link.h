// PipelineLink: activations and gradients between virtual stages on different pipeline ranks.
//
// A send is started and its tensor held until the window of its virtual stage and direction is full
// (Program::pending_sends) or the step ends; a receive may be posted ahead. The memory replay keeps
// both alive for exactly as long. A message is named by (sending stage, direction, micro-batch), so
// nothing depends on the order in which a schedule lets messages pass each other.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "exec/comm/communicator.h"
#include "sim/plan/plan.h"
#include "sim/schedule/program.h"

namespace meshwright {

/// One rank's ends. Not thread-safe.
class PipelineLink {
 public:
  /// `peers` holds the ranks at the same place of every pipeline rank, in their order.
  PipelineLink(const Plan& plan, const Program& program, Communicator& peers);

  /// Makes room for a message and asks for it; recv() of the same message then waits for it.
  void post_recv(const Action& action);
  /// Waits for the message: [tokens of a micro-batch, or of a sequence-parallel shard, D].
  [[nodiscard]] at::Tensor recv(const Action& action);
  /// Ends the oldest send of a full window, then starts this one; the tensor must not be written
  /// any more.
  void send(const Action& action, const at::Tensor& t);
  void finish_sends();

 private:
  struct Posted {
    at::Tensor tensor;
    Pending pending;
  };
  [[nodiscard]] int tag(int sender, const Action& action) const;
  Posted start_recv(const Action& action);

  Communicator& peers_;
  int num_micro_batches_;
  size_t window_;
  int64_t tokens_;
  int64_t width_;
  std::vector<std::deque<Pending>> sends_;  ///< Per virtual stage and direction.
  std::map<int, Posted> posted_;            ///< By tag.
};

}  // namespace meshwright
