// Buffer lifetimes of a block, derived from which operators mention a buffer.
#pragma once

#include <vector>

#include "sim/graph/model_graph.h"

namespace meshwright {

/// Fills block.forward, .recompute and .backward from plain operator lists.
///
/// Without recompute, a buffer that backward mentions lives until its last mention there. With
/// recompute only the block's input survives forward, and the recompute list is the forward list
/// without the operators whose results backward never reads (the last matmul and its collective,
/// for a decoder layer).
void assign_lifetimes(BlockGraph& block,
                      const std::vector<Operator>& forward,
                      const std::vector<Operator>& backward,
                      bool recompute);

}  // namespace meshwright
