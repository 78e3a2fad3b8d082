// Timeline: when each action of one step started and ended on each rank, predicted or measured.
#pragma once

#include <string>
#include <vector>

#include "sim/core/result.h"
#include "sim/mesh/mesh.h"
#include "sim/schedule/program.h"

namespace meshwright {

/// One action on one rank. Times are seconds on a clock common to all ranks of the timeline.
struct Span {
  Action action;
  double start_s = 0;
  double end_s = 0;
  double compute_s = 0;  ///< Inside forward, recompute and backward: operators.
  double comm_s = 0;     ///< Inside them: tensor-parallel collectives,
  double cp_s = 0;       ///< those of context parallelism,
  double ep_s = 0;       ///< and of expert parallelism.
  double offload_s = 0;  ///< Transfers to other memory. The rest of the span is host time.
};

struct RankTimeline {
  int rank = 0;
  double step_start_s = 0;
  double step_end_s = 0;
  std::vector<Span> spans;  ///< In order of start.
};

struct Timeline {
  std::vector<RankTimeline> ranks;
};

/// Chrome's trace-event JSON ("chrome://tracing", Perfetto): one track per rank, named like "rank 2
/// (stage 1)".
[[nodiscard]] std::string to_chrome_trace(const Timeline& timeline, const Mesh& mesh);

}  // namespace meshwright
