// SPDX-License-Identifier: Apache-2.0
// ZB-V (arXiv:2401.10241, section 6 and arXiv:2405.15362): rank r holds parts r and 2p-1-r, so that
// the last part's backward starts on the rank that began. With F = Bin = W there is no bubble
// between a rank's first and last slot, and p micro-batches (2p parts of them) are in flight on
// every rank: the memory of 1F1B. Ranks that meet at the end of the step wait (p-1) F/2 for the
// last one's start.
#include <algorithm>

#include "sim/schedule/pipeline/pipeline_order.h"

namespace meshwright {
namespace {

/// Appends slots of one rank; each part's micro-batches come in order.
class VBuilder {
 public:
  VBuilder(int rank, int num_ranks, int num_micro_batches)
      : stage_{rank, 2 * num_ranks - 1 - rank}, m_(num_micro_batches) {}

  void forward(int part) { add(SlotWork::kForward, part, forward_[part]); }
  void input(int part) { add(SlotWork::kBackwardInput, part, input_[part]); }
  void weight(int part) { add(SlotWork::kBackwardWeight, part, weight_[part]); }
  void input_and_weight(int part) {
    input(part);
    weight(part);
  }
  [[nodiscard]] int forwards(int part) const { return forward_[part]; }
  void remaining_weights(int part) {
    while (weight_[part] < input_[part]) weight(part);
  }
  std::vector<PipelineSlot> take() { return std::move(order_); }

 private:
  void add(SlotWork work, int part, int& count) {
    if (count < m_) order_.push_back({work, stage_[part], count});
    ++count;
  }

  int stage_[2];
  int m_;
  int forward_[2] = {0, 0};
  int input_[2] = {0, 0};
  int weight_[2] = {0, 0};
  std::vector<PipelineSlot> order_;
};

}  // namespace

std::vector<PipelineSlot> zero_bubble_v_order(const PipelineShape& shape, int r) {
  const int p = shape.num_ranks;
  // A step that is too short to fill the pipeline leaves out the micro-batches that it lacks.
  const int m = std::max(2 * p - 1, shape.num_micro_batches);
  VBuilder b(r, p, shape.num_micro_batches);
  // Warm-up: the first part until its first result has come back through the V.
  for (int i = 0; i < 2 * (p - r) - 1; ++i) b.forward(0);
  for (int i = 0; i < r; ++i) {
    b.forward(1);
    b.forward(0);
  }
  for (int i = 0; i < p - r; ++i) {
    b.forward(1);
    b.input_and_weight(1);
  }
  while (b.forwards(1) < b.forwards(0) || b.forwards(0) < m) {
    if (b.forwards(0) < m) b.forward(0);
    b.input_and_weight(0);
    b.forward(1);
    b.input_and_weight(1);
  }
  // Drain: input gradients first, since other ranks wait for them.
  for (int i = 0; i < r; ++i) {
    b.input(0);
    b.input(1);
  }
  for (int i = 0; i < p - r; ++i) b.input_and_weight(0);
  b.remaining_weights(1);
  b.remaining_weights(0);
  return b.take();
}

}  // namespace meshwright
