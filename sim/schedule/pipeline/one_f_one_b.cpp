// SPDX-License-Identifier: Apache-2.0
// GPipe (arXiv:1811.06965) and 1F1B (arXiv:2006.09503, arXiv:2104.04473). Bubble of both:
// (p-1)(F+B). In flight: m; min(m, p-r).
#include <algorithm>

#include "sim/schedule/pipeline/pipeline_order.h"

namespace meshwright {

std::vector<PipelineSlot> gpipe_order(const PipelineShape& shape, int rank) {
  std::vector<PipelineSlot> order;
  for (const SlotWork work : {SlotWork::kForward, SlotWork::kBackward}) {
    for (int i = 0; i < shape.num_micro_batches; ++i) order.push_back({work, rank, i});
  }
  return order;
}

std::vector<PipelineSlot> one_f_one_b_order(const PipelineShape& shape, int rank) {
  const int m = shape.num_micro_batches;
  const int warmup = std::min(m, shape.num_ranks - 1 - rank);
  std::vector<PipelineSlot> order;
  for (int i = 0; i < m + warmup; ++i) {
    if (i < m) order.push_back({SlotWork::kForward, rank, i});
    if (i >= warmup) order.push_back({SlotWork::kBackward, rank, i - warmup});
  }
  return order;
}

}  // namespace meshwright
