// Faults that a trainer can be told to make, each a mistake that real systems made in the field:
// `verify` must catch every one of them, or its green light means nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/mesh/layout.h"

namespace meshwright {

enum class Fault : uint8_t {
  kNone,
  /// The first tensor-parallel sum of block 1's forward; without tp, a stage's first bucket.
  kSkippedAllReduce,
  kDoubledNormTerm,  ///< Replicated copies count in the gradient norm on every holder.
  kWrongLossScale,   ///< Gradients are divided by this rank's tokens, not by the global batch's.
};

[[nodiscard]] constexpr std::string_view to_string(Fault f) {
  constexpr std::string_view kNames[] = {
      "none", "skipped_all_reduce", "doubled_norm_term", "wrong_loss_scale"};
  return kNames[static_cast<int>(f)];
}

/// False where the layout has nothing that the fault could break, and training stays right.
[[nodiscard]] constexpr bool changes_training(Fault f, const Layout& l, bool tied_embeddings) {
  switch (f) {
    case Fault::kNone:
      return false;
    case Fault::kSkippedAllReduce:
      return l.tp > 1 || l.dp() > 1;
    case Fault::kDoubledNormTerm:
      return l.tp > 1 || (tied_embeddings && l.pp > 1);
    case Fault::kWrongLossScale:
      return l.dp() > 1;
  }
  return false;
}

}  // namespace meshwright
