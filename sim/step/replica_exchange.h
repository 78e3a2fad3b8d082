// What ranks with the same parameters exchange, and what pipeline neighbours do, by the step
// model's constants.
//
// Reads: StepProblem and a Layout. Feeds: the event simulation's prices, so that they are those of
// the closed form (evaluate_step()), which was fitted on published steps.
#pragma once

#include "sim/core/units.h"
#include "sim/mesh/layout.h"
#include "sim/step/step_inputs.h"

namespace meshwright {

class ReplicaExchange {
 public:
  ReplicaExchange(const StepProblem& problem, const Layout& layout);

  /// Of the gradients of `parameters` dense (or expert) parameters: an all-reduce, or with ZeRO a
  /// reduce-scatter.
  [[nodiscard]] Seconds reduce(double parameters, bool experts) const;
  /// Of the weights: an all-gather.
  [[nodiscard]] Seconds gather(double parameters, bool experts) const;
  /// Of one activation between stages, what no computation hides.
  [[nodiscard]] Seconds transfer(Bytes activation) const;
  /// Share of an exchange that a framework does not hide, however much it computes meanwhile.
  [[nodiscard]] double exposed() const { return exposed_; }
  /// Fully sharded: of the shorter of an exchange and the computation it runs behind, the share by
  /// which they slow each other down.
  [[nodiscard]] double interference() const { return interference_; }

 private:
  struct Ring {
    double ranks = 1;
    double bandwidth = 1;  ///< Bytes/s.
    [[nodiscard]] double one_way(double bytes) const {
      return ranks > 1 ? (ranks - 1) / ranks * bytes / bandwidth : 0;
    }
  };
  Ring dense_, experts_;
  int zero_stage_;
  double gradient_bytes_, alpha_s_, exposed_, interference_;
  double hop_bandwidth_, hop_exposed_;
};

}  // namespace meshwright
