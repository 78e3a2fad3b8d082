// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/findings.h"

#include "sim/advice/checklist.h"

namespace meshwright {

Diagnosis Checklist::run() {
  utilisation();
  communication();
  data_parallel();
  bubble();
  host();
  memory();
  recompute();
  attention();
  tensor_parallel_reach();
  sequence_parallel();
  kv_heads();
  alignment();
  return std::move(out_);
}

void Checklist::file(bool found, Finding f, const std::string& passed) {
  if (found) {
    f.remedies = remedies_.take();
    out_.findings.push_back(std::move(f));
  } else if (!passed.empty()) {
    out_.passed.push_back(passed);
  }
}

Seconds exposed_communication(const StepReport& r) {
  return r[Term::kExposedTp] + r[Term::kExposedCp] + r[Term::kExposedEp] + r[Term::kExposedPp] +
         r[Term::kExposedDp];
}

Diagnosis diagnose(const Plan& plan, const Simulation& simulation, const CostModel& cost) {
  return Checklist(plan, simulation, cost).run();
}

}  // namespace meshwright
