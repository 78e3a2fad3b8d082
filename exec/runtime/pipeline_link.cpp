// SPDX-License-Identifier: Apache-2.0
#include "exec/runtime/pipeline_link.h"

#include <ATen/ops/empty.h>

#include <utility>

namespace meshwright {
namespace {

int channel(int sender, Direction direction) { return 2 * sender + static_cast<int>(direction); }

}  // namespace

PipelineLink::PipelineLink(const Plan& plan, const Program& program, Communicator& peers)
    : peers_(peers),
      num_micro_batches_(program.num_micro_batches),
      window_(static_cast<size_t>(program.pending_sends)),
      tokens_(plan.tokens_per_micro_batch() / (plan.layout().sp ? plan.layout().tp : 1)),
      width_(plan.model().d_model),
      sends_(static_cast<size_t>(2 * plan.stage_map().size())) {}

int PipelineLink::tag(int sender, const Action& a) const {
  return channel(sender, a.direction) * num_micro_batches_ + a.micro_batch;
}

PipelineLink::Posted PipelineLink::start_recv(const Action& a) {
  Posted p{at::empty({tokens_, width_}), {}};
  p.pending = peers_.recv_async(p.tensor, a.peer, tag(a.peer_stage, a));
  return p;
}

void PipelineLink::post_recv(const Action& a) {
  posted_.emplace(tag(a.peer_stage, a), start_recv(a));
}

at::Tensor PipelineLink::recv(const Action& a) {
  const auto ahead = posted_.find(tag(a.peer_stage, a));
  Posted p = ahead == posted_.end() ? start_recv(a) : std::move(ahead->second);
  if (ahead != posted_.end()) posted_.erase(ahead);
  p.pending.wait();
  return std::move(p.tensor);
}

void PipelineLink::send(const Action& a, const at::Tensor& t) {
  std::deque<Pending>& under_way =
      sends_[static_cast<size_t>(channel(a.virtual_stage, a.direction))];
  if (under_way.size() == window_) {
    under_way.front().wait();
    under_way.pop_front();
  }
  under_way.push_back(peers_.send_async(t, a.peer, tag(a.virtual_stage, a)));
}

void PipelineLink::finish_sends() {
  for (std::deque<Pending>& under_way : sends_) {
    for (Pending& p : under_way) p.wait();
    under_way.clear();
  }
}

}  // namespace meshwright
