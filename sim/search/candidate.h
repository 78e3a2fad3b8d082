// StepCandidate: one layout in the closed form, and its evaluation.
//
// Reads: StepProblem (the model, cluster and framework). Feeds: search(), which evaluates millions,
// and the brute-force test that it must agree with to the bit.
#pragma once

#include <string>

#include "sim/step/step_memory.h"
#include "sim/step/step_time.h"

namespace meshwright {

/// A layout and the choices of the workload that go with it.
struct StepCandidate {
  StepLayout layout;
  RecomputeKind recompute = RecomputeKind::kNone;
  bool sequence_parallel = false;
};

struct Evaluation {
  double time_s = 0;
  double memory_bytes = 0;  ///< Point estimate of the fullest stage.
};

/// `problem` with the candidate's choices of recompute and sequence parallelism.
[[nodiscard]] StepProblem problem_of(const StepProblem& problem, const StepCandidate& candidate);

/// The whole of it, from nothing that is at hand: what search() computes in parts.
[[nodiscard]] Evaluation evaluate(const StepProblem& problem,
                                  StateConvention convention,
                                  const StepCandidate& candidate);

/// "tp8 pp4 dp2 v3 mb1 zero1 recompute=core sp": for reports.
[[nodiscard]] std::string describe(const StepCandidate& candidate);

}  // namespace meshwright
