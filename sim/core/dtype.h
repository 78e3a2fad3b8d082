// Number formats of tensors, and the precision recipes a layout can choose.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/core/enum_names.h"

namespace meshwright {

enum class DType : uint8_t { kFloat32, kBFloat16, kInt64, kUInt8 };

[[nodiscard]] constexpr int64_t size_of(DType t) {
  switch (t) {
    case DType::kFloat32:
      return 4;
    case DType::kBFloat16:
      return 2;
    case DType::kInt64:
      return 8;
    case DType::kUInt8:
      return 1;
  }
  return 0;
}

/// Which formats training uses.
///   kFp32: parameters, gradients and Adam state in FP32 (16 bytes per parameter).
///   kBf16: BF16 parameters and activations, FP32 gradients, FP32 master copy and Adam state
///          (2 + 4 + 12 = 18 bytes; Megatron-LM's main-gradient convention).
///   kFp8:  as kBf16, with the layers' matmuls on FP8 operands that are cast where they are used.
enum class Precision : uint8_t { kFp32, kBf16, kFp8 };
inline constexpr EnumNames<Precision, 3> kPrecisionNames{{"fp32", "bf16", "fp8"}};

[[nodiscard]] constexpr std::string_view to_string(Precision p) { return kPrecisionNames(p); }
[[nodiscard]] constexpr DType activation_dtype(Precision p) {
  return p == Precision::kFp32 ? DType::kFloat32 : DType::kBFloat16;
}

}  // namespace meshwright
