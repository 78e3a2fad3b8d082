// Remedies: the changes of a plan that the checklist proposes, each simulated.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/advice/findings.h"

namespace meshwright {

class Remedies {
 public:
  Remedies(const Plan& plan, const CostModel& cost) : plan_(plan), cost_(cost) {}

  /// `change` applied to the plan's layout; left out where a rule forbids it or nothing changes.
  template <class Change>
  void try_layout(const std::string& action, Change change) {
    Layout l = plan_.layout();
    change(l);
    if (l.stages.size() != static_cast<size_t>(l.num_parts())) l.stages.clear();
    add(action, in_layout(plan_, l));
  }
  /// The same with other degrees.
  void try_degrees(const std::string& action, int tp, int pp);
  /// The fastest number of virtual stages with the interleaved schedule.
  void try_interleaving();
  /// The same layout with another batch.
  void try_batch(const std::string& action, int64_t sequences);
  /// The same layout with at least `micro_batches`, and as many more (up to twice) as a bubble
  /// below `fraction` takes. Returns their number; nothing where no such batch is legal.
  std::optional<int64_t> try_micro_batches(int64_t micro_batches, double fraction);
  /// The same layout with `factor` times the bandwidth between nodes.
  void try_network(double factor);
  /// One that is simulated already.
  void offer(std::string action, Variant result) {
    list_.push_back({std::move(action), std::move(result), ""});
  }
  void note(std::string action, std::string effect) {
    list_.push_back({std::move(action), std::nullopt, std::move(effect)});
  }

  [[nodiscard]] std::vector<Remedy> take() { return std::exchange(list_, {}); }

 private:
  void add(const std::string& action, const std::optional<Plan>& plan);

  const Plan& plan_;
  const CostModel& cost_;
  std::vector<Remedy> list_;
};

}  // namespace meshwright
