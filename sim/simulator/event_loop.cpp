// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator/event_loop.h"

#include <algorithm>

namespace meshwright {

void EventLoop::start(int id, double work, double weight) {
  items_.push({virtual_now_ + work, sequence_++, id, weight});
  active_weight_ += weight;
}

double EventLoop::rate() const {
  if (!cores_ || active_weight_ <= *cores_) return 1.0;
  return *cores_ / active_weight_ / oversubscription_;
}

std::optional<int> EventLoop::next() {
  if (items_.empty()) return std::nullopt;
  const Item item = items_.top();
  items_.pop();
  const double left = std::max(0.0, item.virtual_finish - virtual_now_);
  now_ += left / rate();
  virtual_now_ += left;
  active_weight_ -= item.weight;
  return item.id;
}

}  // namespace meshwright
