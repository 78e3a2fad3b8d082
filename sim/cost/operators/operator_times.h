// Times of matmul and attention on one device from the built-in fits: what a cost model asks.
//
// Reads: models/fits and the device's data sheet. A question costs about 3 us (matmul) or less and
// allocates nothing.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "sim/core/units.h"
#include "sim/cost/operators/attention_model.h"
#include "sim/cost/operators/gemm_model.h"
#include "sim/cost/operators/operator_fits.h"

namespace meshwright {

class OperatorTimes {
 public:
  explicit OperatorTimes(const DeviceSpec& device);

  /// Nothing where no device of this architecture has constants of `kind`.
  [[nodiscard]] std::optional<Seconds> gemm(GemmKind kind, const GemmShape& shape) const;
  /// By the decode kernels for one new token, else by prefill's; nothing as above.
  [[nodiscard]] std::optional<Seconds> attention(const AttentionCall& shape) const;

  /// Whose constants: "gemm bf16: h100; ... (data sheet of h200)"; empty without any.
  [[nodiscard]] std::string provenance() const;

 private:
  GpuFacts gpu_;
  std::array<std::optional<GemmConstants>, 3> gemm_;  ///< By GemmKind.
  std::optional<PrefillConstants> prefill_;
  std::optional<DecodeConstants> decode_;
  std::string provenance_;
};

}  // namespace meshwright
