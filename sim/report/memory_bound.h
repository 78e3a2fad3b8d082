// MemoryBound: what a device must have free for a rank whose requested bytes peak at a figure.
//
// Reads: nothing. Made by sim/memory/memory_bound.h; part of the predicted StepReport. A measured
// report has none.
#pragma once

#include "sim/core/units.h"

namespace meshwright {

/// The upper bound in named terms. On CPU ranks the peak is exact, and all terms are zero.
struct MemoryBound {
  /// Peak and the terms below; to be compared with ClusterSpec::capacity(), from which the
  /// device's context is taken already.
  Bytes upper;
  double coverage = 1;  ///< Share of measured peaks that such a bound held for.
  /// What a caching allocator holds beyond what is requested, and what the model misses.
  Bytes fragmentation;
  Bytes workspace;               ///< Of matmul and attention libraries.
  Bytes communicators;           ///< Buffers of the collective library,
  double num_communicators = 0;  ///< of so many groups of this rank.
  /// Peak of the first step: on GPUs Adam's moments appear at its end, so that it is below
  /// the steady state's, by which plans are judged.
  Bytes first_step_peak;
  /// What a rank copies to host memory when it saves: its part of weights and optimizer states.
  Bytes snapshot;
  /// Peak of the device while saving: states alone, and on CPU ranks the snapshot beside them.
  Bytes save_peak;

  friend bool operator==(const MemoryBound&, const MemoryBound&) = default;
};

}  // namespace meshwright
