// Buffer lifetimes of a block, derived from which operators mention a buffer.
#pragma once

#include <vector>

#include "sim/graph/model_graph.h"

namespace meshwright {

/// Fills block.forward, .recompute, .backward and the split backward from plain operator lists.
///
/// Without recompute, a buffer that backward mentions lives until its last mention there. With
/// recompute only the block's input survives forward, and the recompute list is the forward list
/// without the operators whose results backward never reads (the last matmul and its collective,
/// for a decoder layer).
///
/// The split backward defers the operators that the gradient of the block's input does not depend
/// on: weight gradients, and gathers that only they read. A buffer that a deferred operator reads
/// and a later one of the first pass would overwrite is kept: the later one writes a new buffer.
void assign_lifetimes(BlockGraph& block,
                      const std::vector<Operator>& forward,
                      const std::vector<Operator>& backward,
                      bool recompute);

}  // namespace meshwright
