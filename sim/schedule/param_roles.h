// How each role of a logical tensor is packed and how it lies over tensor-parallel ranks.
//
// Reads: nothing. Feeds: PlacementTable.
#pragma once

#include "sim/graph/operator.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {

/// The packed parameter that holds tensors of a role.
[[nodiscard]] ParamSlot slot_of(ParamRole role);

enum class TpSplit { kReplicated, kRows, kColumns };
[[nodiscard]] TpSplit tp_split(ParamRole role);

/// Replicated tensors whose copies see different heads or expert shards on each tp rank, so that
/// their gradients are partial sums with or without sequence parallelism.
[[nodiscard]] bool partial_without_sp(ParamRole role);

[[nodiscard]] bool is_kv(ParamRole role);

}  // namespace meshwright
