// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/exchange_check.h"

#include <fmt/format.h>

namespace meshwright {
namespace {

class ExchangeCheck {
 public:
  ExchangeCheck(const Plan& plan, const RankPlacement& placement, int rank)
      : plan_(plan), placement_(placement), rank_(rank), buckets_(placement.buckets.size()) {}

  std::optional<Error> run(const std::vector<Action>& actions) {
    for (const Action& a : actions) {
      if (walks_blocks(a.kind)) {
        for (int b = a.block_begin; b < a.block_end; ++b) walk(a, b);
      } else if (a.bucket >= 0) {
        exchange(a);
      } else if (a.kind == ActionKind::kGradNorm) {
        for (size_t i = 0; i < buckets_.size(); ++i) at_norm(a, i);
      }
      if (error_) return error_;
    }
    for (size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i].reducing || buckets_[i].gathering)
        return defect(actions.back(), i, "is still under way at the end of the step");
      if (sharded(i) && buckets_[i].whole) return defect(actions.back(), i, "is never dropped");
    }
    return std::nullopt;
  }

 private:
  struct State {
    bool gathering = false, whole = false;
    bool dirty = false;  ///< Written since its last reduction.
    bool reducing = false, reduced = false;
  };

  /// Whether a bucket's parameters are gathered to be read.
  [[nodiscard]] bool sharded(size_t bucket) const {
    return plan_.layout().zero_stage >= 3 && !placement_.buckets[bucket].persistent;
  }
  [[nodiscard]] bool reduces() const {
    return plan_.layout().replicas() * plan_.layout().model_copies() > 1;
  }
  std::optional<Error> defect(const Action& a, size_t bucket, const char* what) const {
    return Error{.where = "program",
                 .field = "schedule",
                 .value = summary(plan_.layout()),
                 .rule = fmt::format("at {}: bucket {} of block {} {}",
                                     to_string(a, rank_),
                                     bucket,
                                     placement_.buckets[bucket].block,
                                     what),
                 .remedy = "its generator is wrong"};
  }
  void fail(const Action& a, size_t bucket, const char* what) {
    if (!error_) error_ = defect(a, bucket, what);
  }
  [[nodiscard]] bool reads(size_t bucket, int block) const {
    const Bucket& b = placement_.buckets[bucket];
    const bool head = block == num_blocks(plan_.model()) - 1;
    return b.block == block || (head && plan_.model().tied_embeddings && b.block == 0 && !b.tied);
  }

  void walk(const Action& a, int block) {
    for (size_t i = 0; i < buckets_.size(); ++i) {
      if (!reads(i, block)) continue;
      State& s = buckets_[i];
      const bool weights = a.kind != ActionKind::kBackwardWeight;
      if (weights && sharded(i) && !s.whole) fail(a, i, "is not gathered");
      const bool writes = a.kind != ActionKind::kForward && a.kind != ActionKind::kRecompute &&
                          !placement_.buckets[i].frozen;
      if (writes && s.reducing) fail(a, i, "is written while it is reduced");
      if (writes) s.dirty = true;
    }
  }

  void exchange(const Action& a) {
    const auto i = static_cast<size_t>(a.bucket);
    State& s = buckets_[i];
    switch (a.kind) {
      case ActionKind::kReduce:
        if (s.reducing) fail(a, i, "is reduced twice at once");
        s.reducing = true;
        s.dirty = false;
        break;
      case ActionKind::kWaitReduce:
        if (!s.reducing) fail(a, i, "is waited for and not under way");
        s.reducing = false;
        s.reduced = true;
        break;
      case ActionKind::kGather:
        if (s.gathering || s.whole) fail(a, i, "is gathered twice");
        s.gathering = true;
        break;
      case ActionKind::kWaitGather:
        if (!s.gathering) fail(a, i, "is waited for and not under way");
        s.gathering = false;
        s.whole = sharded(i);
        break;
      case ActionKind::kRelease:
        if (!s.whole) fail(a, i, "is dropped and not whole");
        s.whole = false;
        break;
      case ActionKind::kOptimizer:
        if (s.dirty && reduces()) fail(a, i, "is updated from a gradient that is not reduced");
        break;
      default:
        break;
    }
  }

  void at_norm(const Action& a, size_t i) {
    if (!reduces() || placement_.buckets[i].frozen) return;
    if (buckets_[i].reducing) fail(a, i, "is still being reduced");
    if (buckets_[i].dirty || !buckets_[i].reduced) fail(a, i, "is not reduced");
  }

  const Plan& plan_;
  const RankPlacement& placement_;
  int rank_;
  std::vector<State> buckets_;
  std::optional<Error> error_;
};

}  // namespace

std::optional<Error> check_exchanges(const Plan& plan,
                                     const std::vector<RankPlacement>& placements,
                                     const Program& program) {
  for (size_t r = 0; r < program.stages.size(); ++r) {
    if (auto e = ExchangeCheck(plan, placements[r], static_cast<int>(r)).run(program.stages[r]))
      return e;
  }
  return std::nullopt;
}

}  // namespace meshwright
