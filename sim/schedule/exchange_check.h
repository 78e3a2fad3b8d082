// check_exchanges(): is every bucket whole when a program reads it, and reduced when it is used?
//
// Reads: a Program and the buckets of its ranks. Feeds: check_program(). The static half of ZeRO's
// contract: what is started is ended once and before it is read; no backward writes a gradient that
// is under way; sharded parameters are gathered around each block and dropped; each gradient is
// reduced after the last backward that writes it and before the norm.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/program.h"

namespace meshwright {

/// The first thing that is wrong, or nothing.
[[nodiscard]] std::optional<Error> check_exchanges(const Plan& plan,
                                                   const std::vector<RankPlacement>& placements,
                                                   const Program& program);

}  // namespace meshwright
