// SPDX-License-Identifier: Apache-2.0
#include "exec/data/batch_reader.h"

#include <algorithm>

#include "kernels/random/permuted_index.h"

namespace meshwright {

BatchReader::BatchReader(const SampleSource& source, const Plan& plan, int dp_index)
    : source_(source),
      seq_len_(plan.workload().seq_len),
      global_batch_(plan.workload().global_batch),
      micro_batch_(plan.layout().micro_batch),
      dp_(plan.layout().dp()),
      dp_index_(dp_index),
      seed_(plan.workload().seed),
      ids_(static_cast<size_t>(seq_len_)),
      labels_(static_cast<size_t>(seq_len_)) {}

int64_t BatchReader::sample_index(int64_t g) const {
  const int64_t n = source_.num_samples();
  const auto epoch = static_cast<uint64_t>(g / n);
  return static_cast<int64_t>(kernels::permuted_index(
      static_cast<uint64_t>(g % n), static_cast<uint64_t>(n), seed_ + epoch));
}

void BatchReader::read(int64_t step, int micro_batch, int64_t* ids, int64_t* labels) {
  const int64_t first = first_sample(step, micro_batch);
  for (int64_t i = 0; i < micro_batch_; ++i) {
    source_.read(sample_index(first + i),
                 ids != nullptr ? ids + i * seq_len_ : ids_.data(),
                 labels != nullptr ? labels + i * seq_len_ : labels_.data());
  }
}

BatchReader::TokenCounts BatchReader::count_tokens(int64_t step) {
  if (source_.every_token_counts())
    return {global_batch_ * seq_len_, global_batch_ / dp_ * seq_len_};
  TokenCounts counts;
  for (int64_t i = 0; i < global_batch_; ++i) {
    source_.read(sample_index(step * global_batch_ + i), ids_.data(), labels_.data());
    const int64_t valid = seq_len_ - std::count(labels_.begin(), labels_.end(), kIgnoreLabel);
    counts.global += valid;
    if (i / micro_batch_ % dp_ == dp_index_) counts.own += valid;
  }
  return counts;
}

}  // namespace meshwright
