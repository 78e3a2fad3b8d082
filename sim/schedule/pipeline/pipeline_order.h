// Pipeline schedules: in which order a pipeline rank works through its virtual stages and
// micro-batches.
//
// A schedule is a generator of slots and knows nothing of operators, messages or time; program.cpp
// expands its slots. Closed forms of bubble and memory are in each schedule's file, and tests hold
// the event simulation to them. m micro-batches, p ranks, r this rank, v parts per rank; F, Bin and
// W are the times of a forward, an input-gradient and a weight-gradient pass of a rank, B = Bin +
// W.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/mesh/layout.h"

namespace meshwright {

enum class SlotWork : uint8_t {
  kForward,
  kBackward,        ///< Both gradients.
  kBackwardInput,   ///< What the stage before waits for.
  kBackwardWeight,  ///< The rest, of a micro-batch whose kBackwardInput came earlier.
};

struct PipelineSlot {
  SlotWork work = SlotWork::kForward;
  int virtual_stage = 0;
  int micro_batch = 0;
  /// Runs together with the next slot: both take their inputs first and send their results last.
  bool joins_next = false;
  friend bool operator==(const PipelineSlot&, const PipelineSlot&) = default;
};

struct PipelineShape {
  ScheduleKind kind = ScheduleKind::k1f1b;
  int num_ranks = 1;
  int virtual_stages = 1;  ///< Parts per rank.
  int num_micro_batches = 1;
};

/// The slots of one pipeline rank: every micro-batch forward and backward once on each of its
/// virtual stages; under dualpipe the first half of the micro-batches (rounded up) through the
/// first copy, the others through the second. Any number of micro-batches is legal here.
[[nodiscard]] std::vector<PipelineSlot> pipeline_order(const PipelineShape& shape, int rank);

/// Interleaved: micro-batches that a rank takes through one part before it turns to its next one:
/// as many as there are ranks, or a few more where they do not divide the micro-batches.
[[nodiscard]] int micro_batch_group(int num_ranks, int num_micro_batches);

/// The schedules behind pipeline_order(), each in its file.
[[nodiscard]] std::vector<PipelineSlot> gpipe_order(const PipelineShape& shape, int rank);
[[nodiscard]] std::vector<PipelineSlot> one_f_one_b_order(const PipelineShape& shape, int rank);
[[nodiscard]] std::vector<PipelineSlot> interleaved_order(const PipelineShape& shape, int rank);
[[nodiscard]] std::vector<PipelineSlot> zero_bubble_order(const PipelineShape& shape, int rank);
[[nodiscard]] std::vector<PipelineSlot> zero_bubble_v_order(const PipelineShape& shape, int rank);
[[nodiscard]] std::vector<PipelineSlot> dualpipe_order(const PipelineShape& shape, int rank);

}  // namespace meshwright
