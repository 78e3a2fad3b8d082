// balance_stages(): the split of a model's layers over pipeline parts by what blocks cost.
//
// Reads: seconds per block. Feeds: the planner, which tries the split beside the even one. The
// embedding is light and the head is a large matmul, and a model may start with dense layers before
// its layers of experts: an even split leaves the pipeline waiting for one stage.
#pragma once

#include <vector>

#include "sim/plan/plan.h"
#include "sim/simulator/stage_costs.h"

namespace meshwright {

/// Layers per part, at least one each, of the contiguous split whose slowest part is fastest; among
/// those, the one whose parts are most equal (smallest sum of squares). `blocks` are the seconds of
/// the embedding, each decoder layer and the head; embedding and head count in the first and last
/// part. Dynamic programming over (part, layer): O(parts x layers^2).
[[nodiscard]] std::vector<int> balance_stages(const std::vector<double>& blocks, int parts);

/// Seconds of one micro-batch through each block of a plan, forward to backward.
[[nodiscard]] std::vector<double> block_seconds(const Plan& plan, const StageCosts& costs);

}  // namespace meshwright
