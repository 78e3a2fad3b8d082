// SPDX-License-Identifier: Apache-2.0
// DualPipe (DeepSeek-V3, arXiv:2412.19437; the phases are those of deepseek-ai/DualPipe): two
// copies of the model, fed from opposite ends. Rank r holds part r of the first copy and part p-1-r
// of the second; in the steady phase the forward of one copy runs together with the backward of the
// other. In flight: p + 1. Bubble with F = Bin = W: (p/2 - 1)(F&B + B - 3W), where F&B is such a
// pair.
//
// A pair is priced as the sum of its parts: hiding one's communication behind the other's
// computation is not modelled. p is even.
#include <algorithm>
#include <deque>

#include "sim/schedule/pipeline/pipeline_order.h"

namespace meshwright {
namespace {

/// Direction 0 is the copy that enters on this rank's half of the pipeline, 1 the other one.
class DualPipeBuilder {
 public:
  DualPipeBuilder(const PipelineShape& shape, int rank) {
    const int p = shape.num_ranks;
    const bool second_half = rank >= p / 2;
    const int first_copies = (shape.num_micro_batches + 1) / 2;
    for (int direction = 0; direction < 2; ++direction) {
      const int copy = second_half ? 1 - direction : direction;
      stage_[direction] = copy == 0 ? rank : p + (p - 1 - rank);
      begin_[direction] = copy == 0 ? 0 : first_copies;
      count_[direction] = copy == 0 ? first_copies : shape.num_micro_batches - first_copies;
    }
  }

  void forward(int d) { add(SlotWork::kForward, d, forward_[d]++); }
  void backward(int d) { add(SlotWork::kBackward, d, backward_[d]++); }
  void split_backward(int d) {
    deferred_.push_back({d, backward_[d]});
    add(SlotWork::kBackwardInput, d, backward_[d]++);
  }
  void weight() {
    const Deferred w = deferred_.front();
    deferred_.pop_front();
    add(SlotWork::kBackwardWeight, w.direction, w.index);
  }
  void forward_and_backward(int forward_direction, int backward_direction) {
    const size_t before = order_.size();
    forward(forward_direction);
    const bool has_forward = order_.size() > before;
    backward(backward_direction);
    if (has_forward && order_.size() == before + 2) order_[before].joins_next = true;
  }
  std::vector<PipelineSlot> take() { return std::move(order_); }

 private:
  struct Deferred {
    int direction, index;
  };
  void add(SlotWork work, int d, int index) {
    if (index < count_[d]) order_.push_back({work, stage_[d], begin_[d] + index});
  }

  int stage_[2], begin_[2], count_[2];
  int forward_[2] = {0, 0};
  int backward_[2] = {0, 0};
  std::deque<Deferred> deferred_;
  std::vector<PipelineSlot> order_;
};

}  // namespace

std::vector<PipelineSlot> dualpipe_order(const PipelineShape& shape, int rank) {
  const int p = shape.num_ranks;
  const int half = p / 2;
  const int depth = std::min(rank, p - 1 - rank);  // distance from the nearer end
  const int to_middle = half - 1 - depth;
  // Per direction; a step that is too short leaves out the micro-batches that it lacks.
  const int m = std::max((shape.num_micro_batches + 1) / 2, p);
  DualPipeBuilder b(shape, rank);
  for (int i = 0; i < 2 * to_middle; ++i) b.forward(0);
  for (int i = 0; i <= depth; ++i) {
    b.forward(0);
    b.forward(1);
  }
  for (int i = 0; i < to_middle; ++i) {
    b.split_backward(1);
    b.weight();
    b.forward(1);
  }
  for (int i = 0; i < m - p + depth + 1; ++i) {
    // The first pair of a middle rank is not joined: its partner waits for the forward.
    if (i == 0 && to_middle == 0) {
      b.forward(0);
      b.backward(1);
    } else {
      b.forward_and_backward(0, 1);
    }
    b.forward_and_backward(1, 0);
  }
  for (int i = 0; i < to_middle; ++i) {
    b.backward(1);
    b.forward_and_backward(1, 0);
  }
  // In the second half of this phase weight gradients are put off, to fill the drain.
  for (int i = 0; i < 2 * (depth + 1); ++i) {
    const int direction = 1 - i % 2;
    i <= depth ? b.backward(direction) : b.split_backward(direction);
  }
  for (int i = 0; i < to_middle; ++i) {
    b.weight();
    b.split_backward(0);
  }
  for (int i = 0; i <= depth; ++i) b.weight();
  return b.take();
}

}  // namespace meshwright
