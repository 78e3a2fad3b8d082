// LoraSpec: fine-tuning of low-rank adapters beside a frozen base.
//
// LoRA (arXiv:2106.09685): y = W x + B (A x) with A [r, in] and B [out, r] trained, W frozen: no
// gradient, master copy or moments of the base. QLoRA (arXiv:2305.14314) keeps the base in NF4:
// 4 bits, and per 64 weights an 8-bit constant with a 32-bit one per 256 of those = 4.127 bits.
#pragma once

#include <vector>

#include "sim/core/enum_names.h"
#include "sim/spec/logical_tensors.h"

namespace meshwright {

/// Storage of the frozen weights; they compute in the precision of the workload.
enum class BaseFormat : uint8_t { kBf16, kNf4 };
inline constexpr EnumNames<BaseFormat, 2> kBaseFormatNames{{"bf16", "nf4"}};

struct LoraSpec {
  int rank = 16;
  BaseFormat base = BaseFormat::kBf16;
  friend bool operator==(const LoraSpec&, const LoraSpec&) = default;
};

/// Bytes per frozen weight where the workload computes in `compute_bytes`-wide numbers.
[[nodiscard]] constexpr double frozen_weight_bytes(BaseFormat base, double compute_bytes) {
  constexpr double kNf4Bits = 4 + 8.0 / 64 + 32.0 / (64 * 256);
  return base == BaseFormat::kNf4 ? kNf4Bits / 8 : compute_bytes;
}

/// Whether a projection gets adapters: those of attention and of dense and shared feed-forwards.
[[nodiscard]] bool has_adapters(ParamRole role);

/// The adapters' tensors, of each block all A, then all B. Role and block are the projection's.
[[nodiscard]] std::vector<LogicalTensor> adapter_tensors(const ModelSpec& model, int rank);

}  // namespace meshwright
