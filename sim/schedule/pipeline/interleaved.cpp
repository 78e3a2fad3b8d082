// SPDX-License-Identifier: Apache-2.0
// Interleaved 1F1B (arXiv:2104.04473), in the order of Megatron-LM's schedules.py: a group of G
// micro-batches goes through the rank's first part, then its second, and so on; backwards from the
// last part. Warm-up: 2(p-r-1) + (v-1)G chunks, one more in flight, at most m v. Bubble:
// (p-1)(F+B)/v.
//
// Megatron-LM takes G = p and refuses or stalls a shorter last group, which waits (v-1)(p - m mod
// p) chunks for its own results (Calculon's term). Here the micro-batches are dealt to floor(m/p)
// groups as equal as they go: a group is never shorter than the pipeline, so there is no such wait;
// the price is (v-1)(G-p) more chunks in flight.
#include <algorithm>

#include "sim/schedule/pipeline/pipeline_order.h"

namespace meshwright {
namespace {

int num_groups(int num_ranks, int m) { return std::max(1, m / num_ranks); }

}  // namespace

int micro_batch_group(int num_ranks, int m) {
  const int groups = num_groups(num_ranks, m);
  return (m + groups - 1) / groups;
}

std::vector<PipelineSlot> interleaved_order(const PipelineShape& shape, int rank) {
  const int p = shape.num_ranks;
  const int v = shape.virtual_stages;
  const int m = shape.num_micro_batches;
  struct Chunk {
    int part, micro_batch;
  };
  std::vector<Chunk> chunks;  // of the forward passes; backward passes mirror the part
  const int groups = num_groups(p, m);
  int begin = 0;
  for (int g = 0; g < groups; ++g) {
    const int end = begin + m / groups + (g < m % groups ? 1 : 0);
    for (int part = 0; part < v; ++part) {
      for (int i = begin; i < end; ++i) chunks.push_back({part, i});
    }
    begin = end;
  }
  const size_t warmup = std::min(
      chunks.size(), static_cast<size_t>(2 * (p - 1 - rank) + (v - 1) * micro_batch_group(p, m)));
  std::vector<PipelineSlot> order;
  for (size_t i = 0; i < chunks.size() + warmup; ++i) {
    if (i < chunks.size())
      order.push_back({SlotWork::kForward, chunks[i].part * p + rank, chunks[i].micro_batch});
    if (i < warmup) continue;
    const Chunk& back = chunks[i - warmup];
    order.push_back({SlotWork::kBackward, (v - 1 - back.part) * p + rank, back.micro_batch});
  }
  return order;
}

}  // namespace meshwright
