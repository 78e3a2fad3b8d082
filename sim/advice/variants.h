// Variants of a plan: the same problem in a slightly different layout, priced.
//
// Reads: a Plan. Feeds: what_if (what more memory would buy), findings (what a remedy would take).
// A variant keeps every choice that it does not name; data parallelism takes what is left of the
// devices.
#pragma once

#include <optional>
#include <vector>

#include "sim/memory/memory_bound.h"
#include "sim/planner/planner.h"

namespace meshwright {

/// A plan with its simulated time and peak.
struct Variant {
  Plan plan;
  Seconds step_time;
  Bytes peak;
  /// What a device must have free for it: the peak's upper bound.
  [[nodiscard]] Bytes needed() const { return memory_upper_bound(plan, peak); }
  [[nodiscard]] bool fits() const { return needed() <= plan.cluster().capacity(); }
};

/// `plan` in another layout (an empty `stages` is balanced), or nothing where a rule forbids it.
[[nodiscard]] std::optional<Plan> in_layout(const Plan& plan, Layout layout);

/// The layout with other degrees: dp is what remains, sharded if it was (or if ZeRO is on); sp
/// comes with tp; a pipeline of one stage has the plain schedule. Nothing where the devices do not
/// divide.
[[nodiscard]] std::optional<Layout> with_degrees(const Layout& layout, int tp, int pp);

/// All legal layouts around `plan`: tp and pp halved, kept and doubled, micro-batch likewise, each
/// recompute, nothing and ZeRO-1 sharded, schedule kept and 1F1B. Without `plan` itself.
[[nodiscard]] std::vector<Plan> neighbours(const Plan& plan);

[[nodiscard]] Variant simulated(const Plan& plan, const CostModel& cost);

/// The fastest of `plans` whose peak is at most `limit`, simulated; nothing when none is. The
/// closed form chooses, so that only one is simulated.
[[nodiscard]] std::optional<Variant> fastest(const std::vector<Plan>& plans,
                                             const CostModel& cost,
                                             Bytes limit);

}  // namespace meshwright
