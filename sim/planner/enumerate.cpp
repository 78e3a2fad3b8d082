// SPDX-License-Identifier: Apache-2.0
// The search space: what a layout can vary, in a fixed order.
#include "sim/planner/planner.h"

namespace meshwright {
namespace {

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> out;
  for (int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) out.push_back(d);
  }
  return out;
}

template <class T>
bool allowed(const std::optional<T>& pin, T value) {
  return !pin || *pin == value;
}

/// Values of an axis that may be pinned: the pin alone (even where no rule allows it, so that the
/// rule is named), else `all`.
template <class T>
std::vector<T> values(const std::optional<T>& pin, std::vector<T> all) {
  return pin ? std::vector<T>{*pin} : all;
}

class Enumeration {
 public:
  Enumeration(const Problem& problem, const LayoutPins& pins) : p_(problem), pins_(pins) {}

  std::vector<Layout> all() {
    const int64_t world = p_.cluster.num_devices;
    for (const int tp : degrees(pins_.tp, world)) {
      for (const int pp : degrees(pins_.pp, world)) {
        context_parallel(tp, pp);
      }
    }
    return std::move(out_);
  }

 private:
  static std::vector<int> degrees(const std::optional<int>& pin, int64_t world) {
    if (pin) return {*pin};
    std::vector<int> out;
    for (const int64_t d : divisors(world)) out.push_back(static_cast<int>(d));
    return out;
  }

  /// A degree that the world must hold, together with those that are fixed already.
  void context_parallel(int tp, int pp) {
    for (const int cp : values(pins_.cp, context_degrees())) {
      Layout l{.tp = tp, .pp = pp, .precision = p_.workload.precision};
      l.cp = cp;
      l.cp_kind = pins_.cp_kind.value_or(CpKind::kRing);
      l.ep = pins_.ep.value_or(1);
      l.expert_tp = pins_.expert_tp.value_or(true);
      apply_fixed_choices(pins_, l);
      data_parallel(l);
    }
  }

  /// Long sequences alone are worth sharing out: below, every rank of a sequence could as well have
  /// sequences of its own.
  [[nodiscard]] std::vector<int> context_degrees() const {
    constexpr int64_t kLongSequence = 8192;
    std::vector<int> out{1};
    if (p_.workload.seq_len < kLongSequence || p_.cluster.is_local()) return out;
    for (int cp = 2; cp <= p_.cluster.num_devices; cp *= 2) {
      if (p_.cluster.num_devices % cp == 0 && p_.workload.seq_len % (2 * cp) == 0)
        out.push_back(cp);
    }
    return out;
  }

  void data_parallel(Layout l) {
    const int64_t world = p_.cluster.num_devices;
    const int64_t model_parallel = int64_t{l.tp} * l.pp * l.cp;
    if (world % model_parallel != 0) {
      const bool hopeless = (pins_.tp && world % l.tp != 0) || (pins_.pp && world % l.pp != 0) ||
                            (pins_.cp && world % l.cp != 0) || (pins_.tp && pins_.pp);
      if (!hopeless)
        return;  // not a factorisation of the cluster, but another value of the free axis may be
      l.dp_replicate = pins_.dp_replicate.value_or(pins_.dp.value_or(1));
      l.dp_shard = pins_.dp_shard.value_or(1);
      l.zero_stage = pins_.zero_stage.value_or(l.shards() > 1 ? 1 : 0);
      schedules(l);
      return;
    }
    const int64_t dp = world / model_parallel;
    if (pins_.dp && *pins_.dp != dp) {
      if (!pins_.tp || !pins_.pp) return;  // other degrees may still make it legal
      l.dp_replicate = *pins_.dp;
      schedules(l);
      return;
    }
    for (const int64_t replicate : divisors(dp)) {
      l.dp_replicate = static_cast<int>(replicate);
      l.dp_shard = static_cast<int>(dp / replicate);
      if (pins_.dp_replicate && pins_.dp_shard) {
        l.dp_replicate = *pins_.dp_replicate;
        l.dp_shard = *pins_.dp_shard;
      } else if (!allowed(pins_.dp_replicate, l.dp_replicate) ||
                 !allowed(pins_.dp_shard, l.dp_shard)) {
        continue;
      }
      for (const int zero : values(pins_.zero_stage, zero_stages(l))) {
        const bool split_pinned = pins_.dp_replicate || pins_.dp_shard;
        const bool other_split = (zero > 0) != (l.shards() > 1) && dp > 1 && !split_pinned;
        if (pins_.zero_stage && other_split) continue;
        l.zero_stage = zero;
        experts(l);
      }
      if (pins_.dp_replicate && pins_.dp_shard) break;
    }
  }

  /// ZeRO needs something to shard over, and ZeRO-0 shards nothing.
  [[nodiscard]] std::vector<int> zero_stages(const Layout& l) const {
    if (l.shards() == 1) return {0};
    std::vector<int> out;
    if (l.dp_shard == 1) out.push_back(0);
    out.insert(out.end(), {1, 2, 3});
    return out;
  }

  /// Experts over every number of ranks with different tokens that divides them, split over tp or
  /// whole.
  void experts(Layout l) {
    if (!p_.model.moe || pins_.ep || p_.cluster.is_local()) return schedules(l);
    for (const bool split :
         values(pins_.expert_tp,
                l.tp > 1 ? std::vector<bool>{true, false} : std::vector<bool>{true})) {
      l.expert_tp = split;
      const int64_t spread = split ? 1 : l.tp;
      const int64_t inner = l.shards() * spread;
      for (const int64_t ep : divisors(p_.model.moe->num_experts)) {
        if (l.replicas() * spread % ep != 0 || ep % spread != 0) continue;
        if (inner % ep != 0 && ep % inner != 0) continue;
        l.ep = static_cast<int>(ep);
        schedules(l);
      }
    }
  }

  void schedules(Layout l) {
    for (const bool sp :
         values(pins_.sp, l.tp > 1 ? std::vector<bool>{false, true} : std::vector<bool>{false})) {
      l.sp = sp;
      if (!sp && !l.expert_tp && l.tp > 1 && !pins_.sp && !pins_.expert_tp) continue;
      for (const ScheduleKind schedule : values(pins_.schedule, schedule_kinds(l.pp))) {
        l.schedule = schedule;
        if (l.zero_stage >= 2 && splits_backward(schedule) && !pins_.schedule) continue;
        for (const int v : values(pins_.virtual_stages, virtual_stages(schedule, l.pp))) {
          l.virtual_stages = v;
          for (const Recompute recompute :
               values(pins_.recompute, {Recompute::kNone, Recompute::kFull})) {
            l.recompute = recompute;
            micro_batches(l);
          }
        }
      }
    }
  }

  [[nodiscard]] static std::vector<ScheduleKind> schedule_kinds(int pp) {
    if (pp == 1) return {ScheduleKind::k1f1b};
    return {ScheduleKind::k1f1b,
            ScheduleKind::kGpipe,
            ScheduleKind::kInterleaved,
            ScheduleKind::kZbH1,
            ScheduleKind::kZbH2,
            ScheduleKind::kZbV,
            ScheduleKind::kDualPipe};
  }

  /// Interleaved: two parts per rank, and every number that splits the layers evenly, up to
  /// kMaxVirtualStages. Each further part saves less bubble and costs more messages.
  [[nodiscard]] std::vector<int> virtual_stages(ScheduleKind schedule, int pp) const {
    if (schedule == ScheduleKind::kZbV) return {2};
    if (schedule != ScheduleKind::kInterleaved) return {1};
    constexpr int kMaxVirtualStages = 8;
    std::vector<int> out = {2};
    for (int v = 3; v <= kMaxVirtualStages; ++v) {
      if (p_.model.num_layers % (int64_t{pp} * v) == 0) out.push_back(v);
    }
    return out;
  }

  void micro_batches(Layout l) {
    const int64_t per_rank = l.dp() > 0 && p_.workload.global_batch % l.dp() == 0
                                 ? p_.workload.global_batch / l.dp()
                                 : 1;
    for (const int64_t micro_batch : values(pins_.micro_batch, divisors(per_rank))) {
      l.micro_batch = micro_batch;
      out_.push_back(l);
    }
  }

  const Problem& p_;
  const LayoutPins& pins_;
  std::vector<Layout> out_;
};

}  // namespace

std::vector<Layout> enumerate_layouts(const Problem& problem, const LayoutPins& pins) {
  return Enumeration(problem, pins).all();
}

}  // namespace meshwright
