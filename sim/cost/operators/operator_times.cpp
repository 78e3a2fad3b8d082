// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/operators/operator_times.h"

namespace meshwright {
namespace {

constexpr double kSecondsPerMicrosecond = 1e-6;

/// The constants for `kind`, and a word on whose they are.
template <class Constants>
std::optional<Constants> chosen_constants(const char* family,
                                          const char* kind,
                                          const DeviceSpec& device,
                                          std::span<const ModelConstant<Constants>> model,
                                          std::string& provenance) {
  const auto chosen = choose_fit(builtin_operator_fits(family), device, kind);
  if (!chosen) return std::nullopt;
  if (!provenance.empty()) provenance += "; ";
  provenance += std::string(family) + " " + kind + ": " + chosen->fit->device;
  if (chosen->transferred) provenance += " (data sheet of " + device.name + ")";
  return constants_from(model, chosen->fit->constants);
}

}  // namespace

OperatorTimes::OperatorTimes(const DeviceSpec& device) : gpu_(gpu_facts(device)) {
  for (const GemmKind kind : {GemmKind::kBf16, GemmKind::kFp8, GemmKind::kInt8WeightOnly}) {
    gemm_[static_cast<size_t>(kind)] =
        chosen_constants("gemm", to_string(kind), device, gemm_model_constants(kind), provenance_);
  }
  prefill_ =
      chosen_constants("attention", "prefill", device, prefill_model_constants(), provenance_);
  decode_ = chosen_constants("attention", "decode", device, decode_model_constants(), provenance_);
}

std::optional<Seconds> OperatorTimes::gemm(GemmKind kind, const GemmShape& shape) const {
  const auto& constants = gemm_[static_cast<size_t>(kind)];
  if (!constants) return std::nullopt;
  return Seconds{gemm_time_us(*constants, gpu_, kind, shape) * kSecondsPerMicrosecond};
}

std::optional<Seconds> OperatorTimes::attention(const AttentionCall& shape) const {
  if (shape.new_tokens == 1) {
    if (!decode_) return std::nullopt;
    return Seconds{decode_time_us(*decode_, gpu_, shape) * kSecondsPerMicrosecond};
  }
  if (!prefill_) return std::nullopt;
  return Seconds{prefill_time_us(*prefill_, gpu_, shape) * kSecondsPerMicrosecond};
}

std::string OperatorTimes::provenance() const { return provenance_; }

}  // namespace meshwright
