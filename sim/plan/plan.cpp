// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan.h"

namespace meshwright {

int64_t Plan::num_micro_batches() const {
  return workload().global_batch / (layout_.dp() * layout_.micro_batch);
}

int64_t Plan::tokens_per_micro_batch() const { return layout_.micro_batch * workload().seq_len; }

std::pair<int, int> Plan::blocks_of_stage(int stage) const {
  int begin = 1;
  for (int s = 0; s < stage; ++s) begin += layout_.stages[static_cast<size_t>(s)];
  int end = begin + layout_.stages[static_cast<size_t>(stage)];
  if (stage == 0) begin = 0;
  if (stage + 1 == layout_.pp) ++end;
  return {begin, end};
}

int Plan::stage_of_block(int block) const {
  for (int s = 0; s < layout_.pp; ++s) {
    const auto [begin, end] = blocks_of_stage(s);
    if (block >= begin && block < end) return s;
  }
  MW_CHECK(false, "block " + std::to_string(block) + " is on no stage");
  return -1;
}

}  // namespace meshwright
