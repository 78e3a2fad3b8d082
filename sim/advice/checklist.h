// Checklist: the checks behind diagnose(), one method each.
//
// What a step loses is in findings_time.cpp, what a layout holds and how it is cut in
// findings_layout.cpp.
#pragma once

#include <string>

#include "sim/advice/remedies.h"

namespace meshwright {

class Checklist {
 public:
  Checklist(const Plan& plan, const Simulation& simulation, const CostModel& cost)
      : plan_(plan),
        l_(plan.layout()),
        report_(simulation.report),
        cost_(cost),
        remedies_(plan, cost) {}

  [[nodiscard]] Diagnosis run();

 private:
  [[nodiscard]] double share(Seconds t) const { return t / report_.step_time; }
  /// Files the finding with the remedies gathered, or, below its threshold, as passed.
  void file(bool found, Finding f, const std::string& passed);

  void utilisation();
  void communication();
  void data_parallel();
  void bubble();
  void host();
  void memory();
  void recompute();
  void attention();
  void tensor_parallel_reach();
  void sequence_parallel();
  void kv_heads();
  void alignment();
  /// Whatever is not compute, largest first.
  [[nodiscard]] std::string largest_losses(double mfu) const;
  void larger_batch();

  const Plan& plan_;
  const Layout& l_;
  const StepReport& report_;
  const CostModel& cost_;
  Remedies remedies_;
  Diagnosis out_;
};

}  // namespace meshwright
