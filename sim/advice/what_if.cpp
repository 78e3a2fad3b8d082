// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/what_if.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/advice/variants.h"
#include "sim/simulator/quick_estimate.h"

namespace meshwright {
namespace {

constexpr double kTenGigabit = 1.25e9;  // bytes/s: the slowest network worth asking about
constexpr double kBandwidthPrecision = 5e-3;
constexpr int kPointsBetween = 3;  // of a range, before it is given up
constexpr double kLargestBatchFactor = 64;
constexpr double kActions = 3e5;  // of a simulated step: about a tenth of a second
constexpr double kActionsPerMicroBatch = 6;

std::shared_ptr<const Problem> changed_problem(const Plan& plan, Knob knob, double value) {
  auto problem = std::make_shared<Problem>(plan.problem());
  switch (knob) {
    case Knob::kInterNodeBandwidth:
      problem->cluster.inter_node.bandwidth = BytesPerSecond{value};
      break;
    case Knob::kGlobalBatch:
      problem->workload.global_batch = static_cast<int64_t>(value);
      break;
  }
  return problem;
}

int64_t batch_granule(const Plan& p) { return p.layout().dp() * p.layout().micro_batch; }

/// Values of a knob on one side of today's: where it ends, and how fine it is.
struct KnobRange {
  double now = 0;
  double bound = 0;
  double granule = 0;  ///< Values are multiples of it; 0: any.
};

double batch_factor(const Plan& a, const Plan& b) {
  const auto actions = [](const Plan& p) {
    const double parts = p.layout().recompute == Recompute::kFull
                             ? static_cast<double>(p.model().num_layers)
                             : p.layout().num_parts();
    return kActionsPerMicroBatch * parts * static_cast<double>(p.num_micro_batches());
  };
  const double affordable = kActions / std::max(actions(a), actions(b));
  return std::clamp(
      std::exp2(std::floor(std::log2(std::max(affordable, 1.0)))), 2.0, kLargestBatchFactor);
}

KnobRange knob_range(const Plan& a, const Plan& b, Knob knob, bool upwards) {
  KnobRange r;
  if (knob == Knob::kInterNodeBandwidth) {
    const ClusterSpec& c = a.cluster();
    r.now = c.inter_node.bandwidth.v;
    r.bound = r.now;
    if (c.num_nodes() == 1) return r;
    r.bound = upwards ? std::max(r.now, c.intra_node.bandwidth.v) : std::min(r.now, kTenGigabit);
    return r;
  }
  r.now = static_cast<double>(a.workload().global_batch);
  r.granule = static_cast<double>(std::lcm(batch_granule(a), batch_granule(b)));
  r.bound = upwards ? r.now * batch_factor(a, b) : std::min(r.now, r.granule);
  return r;
}

/// A value between `from` and `to`, geometrically, on the knob's grid.
double between(const KnobRange& range, double from, double to, double share) {
  const double x = from * std::pow(to / from, share);
  if (range.granule == 0) return x;
  return std::max(1.0, std::round(x / range.granule)) * range.granule;
}

bool narrow(const KnobRange& range, double near, double far) {
  const double gap = std::abs(far - near);
  return range.granule > 0 ? gap <= range.granule
                           : gap <= kBandwidthPrecision * std::min(near, far);
}

/// Times of one layout as a knob turns. The closed form, scaled to the simulation at today's value,
/// tells where a simulation is not needed.
class Turned {
 public:
  Turned(const Plan& plan, const CostModel& cost, Knob knob, double now)
      : plan_(plan),
        cost_(cost),
        knob_(knob),
        scale_(simulated(plan, cost).step_time / closed_form(now).value_or(Seconds{1})) {}

  [[nodiscard]] std::optional<Seconds> about(double value) const {
    const auto t = closed_form(value);
    return t ? std::optional(*t * scale_) : std::nullopt;
  }
  [[nodiscard]] std::optional<Seconds> exactly(double value) const {
    return time_with(plan_, cost_, knob_, value);
  }

 private:
  [[nodiscard]] std::optional<Seconds> closed_form(double value) const {
    const auto problem = changed_problem(plan_, knob_, value);
    const ValidationOutcome outcome = validate(problem, plan_.layout());
    if (!outcome.plan) return std::nullopt;
    const CostModel cost = cost_.with_cluster(problem->cluster);
    StageCostCache cache;
    return estimate_time(*outcome.plan, cost, StageCosts(*outcome.plan, cost, cache));
  }

  const Plan& plan_;
  const CostModel& cost_;
  Knob knob_;
  double scale_;
};

/// Beyond this ratio the scaled closed form is trusted with the order.
constexpr double kClear = 1.03;

std::string zero_choice(const Layout& l) {
  return l.zero_stage == 0 ? "off" : std::to_string(l.zero_stage);
}

}  // namespace

std::string_view key(Knob knob) {
  return knob == Knob::kInterNodeBandwidth ? "inter_node_bandwidth_GBps" : "global_batch_sequences";
}

std::optional<Seconds> time_with(const Plan& plan, const CostModel& cost, Knob knob, double value) {
  const auto problem = changed_problem(plan, knob, value);
  const ValidationOutcome outcome = validate(problem, plan.layout());
  if (!outcome.plan) return std::nullopt;
  return simulate(*outcome.plan, cost.with_cluster(problem->cluster)).report.step_time;
}

Crossing find_crossing(
    const Plan& winner, const Plan& challenger, const CostModel& cost, Knob knob, bool upwards) {
  const KnobRange range = knob_range(winner, challenger, knob, upwards);
  Crossing c{.knob = knob, .upwards = upwards, .now = range.now, .bound = range.bound, .flip = {}};
  if (range.bound == range.now) return c;
  const Turned first(winner, cost, knob, range.now);
  const Turned second(challenger, cost, knob, range.now);
  const auto flipped = [&](double value) {
    const auto w = first.about(value);
    const auto l = second.about(value);
    if (!w || !l || *l > *w * kClear) return false;
    return *second.exactly(value) < *first.exactly(value);
  };
  // The flip nearest to today among a few points, then the bracket halved.
  double near = range.now;
  double far = range.bound;
  bool found = false;
  for (int i = 1; i <= kPointsBetween + 1 && !found; ++i) {
    far = i > kPointsBetween ? range.bound
                             : between(range, range.now, range.bound, i / (kPointsBetween + 1.0));
    found = far != near && flipped(far);
    if (!found) near = far;
  }
  if (!found) return c;
  while (!narrow(range, near, far)) {
    const double middle = between(range, near, far, 0.5);
    if (middle == near || middle == far) break;
    (flipped(middle) ? far : near) = middle;
  }
  c.flip = far;
  return c;
}

std::vector<std::string> differing_choices(const Layout& a, const Layout& b) {
  std::vector<std::string> out;
  const auto note = [&](const char* name, bool differs) {
    if (differs) out.emplace_back(name);
  };
  note("tp", a.tp != b.tp);
  note("pp", a.pp != b.pp);
  note("cp", a.cp != b.cp);
  note("ep", a.ep != b.ep);
  note("zero", zero_choice(a) != zero_choice(b));
  note("recompute", a.recompute != b.recompute || a.recompute_layers != b.recompute_layers);
  note("offload", a.offload != b.offload);
  note("states", a.gradients != b.gradients || a.moments != b.moments);
  note("sp", a.tp == b.tp && a.sp != b.sp);
  note("schedule",
       a.pp == b.pp && (a.schedule != b.schedule || a.virtual_stages != b.virtual_stages));
  note("micro_batch", a.micro_batch != b.micro_batch);
  return out;
}

std::vector<RankedPlan> challengers(const std::vector<Candidate>& candidates,
                                    const RankedPlan& winner,
                                    const CostModel& cost,
                                    size_t limit) {
  const Layout& best = winner.plan.layout();
  // Kinds of layout; schedule and micro-batch are tuning within one.
  static const std::vector<std::string> kKinds = {
      "tp", "pp", "cp", "ep", "zero", "recompute", "offload"};
  std::vector<RankedPlan> out;
  for (const std::string& kind : kKinds) {
    const auto it = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
      const auto differs = differing_choices(best, c.plan.layout());
      return std::find(differs.begin(), differs.end(), kind) != differs.end();
    });
    if (it == candidates.end()) continue;
    const bool known = std::any_of(out.begin(), out.end(), [&](const RankedPlan& p) {
      return p.plan.layout() == it->plan.layout();
    });
    if (!known) out.push_back({it->plan, simulate(it->plan, cost)});
  }
  std::stable_sort(out.begin(), out.end(), [](const RankedPlan& a, const RankedPlan& b) {
    return a.simulation.report.step_time < b.simulation.report.step_time;
  });
  if (out.size() > limit) out.erase(out.begin() + static_cast<std::ptrdiff_t>(limit), out.end());
  return out;
}

Challenge challenge(const RankedPlan& winner, const RankedPlan& challenger, const CostModel& cost) {
  Challenge c{.plan = challenger,
              .differs_in = differing_choices(winner.plan.layout(), challenger.plan.layout()),
              .crossings = {}};
  for (const Knob knob : {Knob::kInterNodeBandwidth, Knob::kGlobalBatch}) {
    for (const bool upwards : {true, false}) {
      Crossing x = find_crossing(winner.plan, challenger.plan, cost, knob, upwards);
      if (x.bound != x.now) c.crossings.push_back(x);
    }
  }
  return c;
}

std::optional<MemoryChallenge> with_more_memory(const RankedPlan& winner,
                                                const CostModel& cost,
                                                double factor) {
  constexpr double kWorthIt = 0.99;
  const DeviceSpec& device = winner.plan.cluster().device;
  const auto best =
      fastest(neighbours(winner.plan), cost, device.memory * factor - device.reserved);
  if (!best || best->fits()) return std::nullopt;
  if (best->step_time > winner.simulation.report.step_time * kWorthIt) return std::nullopt;
  return MemoryChallenge{best->plan, best->step_time, best->needed() + device.reserved};
}

}  // namespace meshwright
