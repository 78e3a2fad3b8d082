// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/zero_actions.h"

#include <algorithm>

namespace meshwright {

ZeroActions::ZeroActions(const Plan& plan,
                         const RankPlacement& placement,
                         const std::vector<PipelineSlot>& slots,
                         std::vector<Action>& actions)
    : zero_stage_(plan.layout().zero_stage),
      ahead_(static_cast<size_t>(plan.layout().prefetch)),
      reshard_(plan.layout().reshard),
      actions_(actions),
      reads_(static_cast<size_t>(num_blocks(plan.model()))),
      states_(placement.buckets.size(), State::kSharded) {
  if (!shards_parameters()) return;
  const size_t head = reads_.size() - 1;
  for (size_t i = 0; i < placement.buckets.size(); ++i) {
    reads_[static_cast<size_t>(placement.buckets[i].block)].push_back(i);
    // A head whose table is the embedding's on the same rank.
    const bool table = plan.model().tied_embeddings && placement.buckets[i].block == 0 &&
                       !placement.buckets[i].tied;
    if (table) reads_[head].push_back(i);
  }
  for (const PipelineSlot& slot : slots) {
    const VirtualStage& v = plan.stage_map()[slot.virtual_stage];
    for (int i = 0; i < v.block_end - v.block_begin; ++i) {
      visits_.push_back(slot.work == SlotWork::kForward ? v.block_begin + i : v.block_end - 1 - i);
    }
  }
}

void ZeroActions::before_block() {
  if (!shards_parameters()) return;
  const size_t end = std::min(visits_.size(), next_ + ahead_ + 1);
  for (size_t v = next_; v < end; ++v) {
    for (const size_t bucket : reads_[static_cast<size_t>(visits_[v])]) {
      if (states_[bucket] != State::kSharded) continue;
      add(ActionKind::kGather, bucket);
      states_[bucket] = State::kGathering;
    }
  }
  for (const size_t bucket : reads_[static_cast<size_t>(visits_[next_])]) {
    if (states_[bucket] != State::kGathering) continue;
    add(ActionKind::kWaitGather, bucket);
    states_[bucket] = State::kWhole;
  }
}

bool ZeroActions::read_soon(size_t bucket) const {
  const size_t end = reshard_ ? std::min(visits_.size(), next_ + ahead_) : visits_.size();
  for (size_t v = next_; v < end; ++v) {
    const std::vector<size_t>& reads = reads_[static_cast<size_t>(visits_[v])];
    if (std::find(reads.begin(), reads.end(), bucket) != reads.end()) return true;
  }
  return false;
}

void ZeroActions::after_block() {
  if (!shards_parameters()) return;
  const int block = visits_[next_++];
  for (const size_t bucket : reads_[static_cast<size_t>(block)]) {
    if (states_[bucket] != State::kWhole || read_soon(bucket)) continue;
    add(ActionKind::kRelease, bucket);
    states_[bucket] = State::kSharded;
  }
}

void ZeroActions::end_oldest_reduce() {
  add(ActionKind::kWaitReduce, reducing_.front());
  reducing_.pop_front();
}

void ZeroActions::before_gradient(size_t bucket) {
  while (std::find(reducing_.begin(), reducing_.end(), bucket) != reducing_.end())
    end_oldest_reduce();
}

void ZeroActions::reduce(size_t bucket) {
  if (reducing_.size() == kReducesInFlight) end_oldest_reduce();
  add(ActionKind::kReduce, bucket);
  reducing_.push_back(bucket);
}

void ZeroActions::finish() {
  while (!reducing_.empty()) end_oldest_reduce();
}

}  // namespace meshwright
