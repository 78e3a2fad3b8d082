// SwiGLU (Shazeer 2020): act = silu(gate) * up with silu(g) = g * sigmoid(g), between the two
// linears of the MLP.
//
//   dgate = dact * up * s * (1 + g * (1 - s)),   dup = dact * g * s,   s = sigmoid(g)
//
// Only gate_up is saved: the activation is cheaper to compute again than to keep.
#pragma once

#include <cstdint>

namespace meshwright::kernels {

/// gate_up [rows, 2 * cols], a row is gate | up; act [rows, cols] is written and must not overlap
/// it.
void swiglu_forward(const float* gate_up, float* act, std::int64_t rows, std::int64_t cols);

/// Overwrites gate_up_inout [rows, 2 * cols] with its gradient; dact [rows, cols]. A schedule that
/// still needs gate_up afterwards passes a copy.
void swiglu_backward(float* gate_up_inout, const float* dact, std::int64_t rows, std::int64_t cols);

}  // namespace meshwright::kernels
