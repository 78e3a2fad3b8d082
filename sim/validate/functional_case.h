// One of Megatron-LM's functional tests (8 GPUs, golden values of peak memory and iteration time)
// as inputs of the step model.
//
// Reads: a row of case, L, h, heads, kv, ffn, seq, mbs, gbs, tp, pp, vpp, cp, ep, exp, sp, do,
// bf16, rc, mem (peak allocated bytes of the last rank), it (seconds per iteration). Feeds:
// validate and the fit. Empty cells take Megatron-LM's defaults. Many run in deterministic mode.
#pragma once

#include "sim/validate/training_case.h"

namespace meshwright {

[[nodiscard]] TrainingCase functional_case(const CsvTable& table, size_t row);

}  // namespace meshwright
