// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/zero_actions.h"

#include <algorithm>

namespace meshwright {

ZeroActions::ZeroActions(const Plan& plan,
                         const RankPlacement& placement,
                         const std::vector<PipelineSlot>& slots,
                         std::vector<Action>& actions)
    : zero_stage_(plan.layout().zero_stage),
      fill_(plan.layout().reduce_bucket),
      ahead_(static_cast<size_t>(plan.layout().prefetch)),
      reshard_(plan.layout().reshard),
      placement_(placement),
      actions_(actions),
      reads_(static_cast<size_t>(num_blocks(plan.model()))),
      states_(placement.buckets.size(), State::kSharded) {
  if (!shards_parameters()) return;
  const size_t head = reads_.size() - 1;
  for (size_t i = 0; i < placement.buckets.size(); ++i) {
    if (placement.buckets[i].persistent) continue;
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

// The last of a collective's buckets is there when all are.
void ZeroActions::end_oldest_reduce() {
  const std::vector<size_t>& oldest = reducing_.front();
  for (size_t i = oldest.size(); i-- > 0;) {
    add(ActionKind::kWaitReduce, oldest[i]);
    actions_.back().joined = i > 0;
  }
  reducing_.pop_front();
}

void ZeroActions::before_gradient(size_t bucket) {
  const auto under_way = [&] {
    return std::any_of(reducing_.begin(), reducing_.end(), [&](const std::vector<size_t>& r) {
      return std::find(r.begin(), r.end(), bucket) != r.end();
    });
  };
  while (under_way()) end_oldest_reduce();
}

void ZeroActions::reduce(size_t bucket) {
  waiting_.push_back(bucket);
  int64_t elements = 0;
  for (const size_t b : waiting_) elements += placement_.buckets[b].padded_numel;
  if (elements >= fill_) flush();
}

void ZeroActions::flush() {
  if (waiting_.empty()) return;
  if (shards_gradients() && reducing_.size() == kReducesInFlight) end_oldest_reduce();
  for (size_t i = 0; i < waiting_.size(); ++i) {
    add(ActionKind::kReduce, waiting_[i]);
    actions_.back().joined = i > 0;
  }
  reducing_.push_back(std::move(waiting_));
  waiting_.clear();
}

void ZeroActions::finish() {
  flush();
  while (!reducing_.empty()) end_oldest_reduce();
}

}  // namespace meshwright
