// Buffer lifetimes of a block, derived from which operators mention a buffer.
#pragma once

#include <vector>

#include "sim/graph/model_graph.h"

namespace meshwright {

/// Fills block.forward, .recompute, .backward and the split backward from plain operator lists.
///
/// `repeated[i]` says that forward operator i may run again before backward: buffers that only such
/// operators write do not survive forward, and the recompute list holds those of them whose results
/// backward reads, directly or through others. Every other buffer that backward or the recompute
/// list mentions lives from forward on. A full recompute repeats every operator, so only the
/// block's input survives, and the last matmul and its collective are not run again.
///
/// The split backward defers the operators that the gradient of the block's input does not depend
/// on: weight gradients, and gathers that only they read. A buffer that a deferred operator reads
/// and a later one of the first pass would overwrite is kept: the later one writes a new buffer.
void assign_lifetimes(BlockGraph& block,
                      const std::vector<Operator>& forward,
                      const std::vector<Operator>& backward,
                      const std::vector<bool>& repeated);

}  // namespace meshwright
