// SPDX-License-Identifier: Apache-2.0
// ZB-H1 and ZB-H2, the handcrafted schedules of arXiv:2401.10241: 1F1B whose backward is split,
// with weight gradients delayed until they fill what would be bubbles.
//
// H1: p-1-r warm-up forwards, weight gradients r micro-batches late: p in flight on every rank,
// bubble (p-1)(F + Bin - W). H2: twice as many and twice as late: 2p-1 in flight, bubble
// (p-1)(F + Bin - 2W) between a rank's first and last slot. A step whose ranks meet at its end, as
// ours do at the gradient norm, also waits for the last rank's start: (p-1)F.
#include <algorithm>

#include "sim/schedule/pipeline/pipeline_order.h"

namespace meshwright {

std::vector<PipelineSlot> zero_bubble_order(const PipelineShape& shape, int rank) {
  const int m = shape.num_micro_batches;
  const int reach = shape.kind == ScheduleKind::kZbH2 ? 2 : 1;
  const int warmup = std::min(m, reach * (shape.num_ranks - 1 - rank));
  const int delay = reach * rank;
  std::vector<PipelineSlot> order;
  int weight = 0;
  for (int i = 0; i < m + warmup; ++i) {
    if (i < m) order.push_back({SlotWork::kForward, rank, i});
    if (i < warmup) continue;
    const int back = i - warmup;
    order.push_back({SlotWork::kBackwardInput, rank, back});
    if (back >= delay) order.push_back({SlotWork::kBackwardWeight, rank, weight++});
  }
  while (weight < m) order.push_back({SlotWork::kBackwardWeight, rank, weight++});
  return order;
}

}  // namespace meshwright
