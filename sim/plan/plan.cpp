// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan.h"

namespace meshwright {

Plan::Plan(std::shared_ptr<const Problem> problem, Layout layout)
    : problem_(std::move(problem)),
      layout_(std::move(layout)),
      stage_map_(std::make_shared<const StageMap>(layout_)),
      recomputes_(static_cast<size_t>(problem_->model.num_layers) + 2) {
  size_t block = 1;
  for (const int layers : layout_.stages) {
    for (int i = 0; i < layers; ++i) recomputes_[block++] = layout_.recomputes(i);
  }
}

int64_t Plan::num_micro_batches() const {
  return workload().global_batch / (layout_.dp() * layout_.micro_batch);
}

int64_t Plan::tokens_per_micro_batch() const { return layout_.micro_batch * workload().seq_len; }

std::pair<int, int> Plan::blocks_of_stage(int virtual_stage) const {
  const VirtualStage& v = stage_map()[virtual_stage];
  return {v.block_begin, v.block_end};
}

int Plan::stage_of_block(int block) const {
  for (int i = 0; i < stage_map().size(); ++i) {
    const VirtualStage& v = stage_map()[i];
    if (block >= v.block_begin && block < v.block_end) return v.rank;
  }
  MW_CHECK(false, "block " + std::to_string(block) + " is on no stage");
  return -1;
}

}  // namespace meshwright
