// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/pipeline/pipeline_order.h"

namespace meshwright {

std::vector<PipelineSlot> pipeline_order(const PipelineShape& shape, int rank) {
  switch (shape.kind) {
    case ScheduleKind::kGpipe:
      return gpipe_order(shape, rank);
    case ScheduleKind::k1f1b:
      return one_f_one_b_order(shape, rank);
    case ScheduleKind::kInterleaved:
      return interleaved_order(shape, rank);
    case ScheduleKind::kZbH1:
    case ScheduleKind::kZbH2:
      return zero_bubble_order(shape, rank);
    case ScheduleKind::kZbV:
      return zero_bubble_v_order(shape, rank);
    case ScheduleKind::kDualPipe:
      return dualpipe_order(shape, rank);
  }
  return {};
}

}  // namespace meshwright
