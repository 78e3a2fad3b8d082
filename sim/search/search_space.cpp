// SPDX-License-Identifier: Apache-2.0
#include "sim/search/search_space.h"

#include <cmath>

namespace meshwright {

std::vector<double> divisors_of(double n) {
  std::vector<double> out;
  for (double d = 1; d <= n; ++d) {
    if (std::fmod(n, d) == 0) out.push_back(d);
  }
  return out;
}

SearchSpace calculon_space(const ModelShape& model, double devices, double max_batch) {
  SearchSpace s{.devices = devices, .global_batch = max_batch, .whole_batch = false};
  const double heads = model.kinds[0].attention.num_heads;
  for (const double d : divisors_of(devices)) {
    if (std::fmod(heads, d) == 0 && std::fmod(model.hidden, d) == 0) s.tp.push_back(d);
    if (std::fmod(model.num_layers(), d) == 0) s.pp.push_back(d);
  }
  s.every_interleave = true;
  s.fills_interleave = false;
  s.drops_idle_forms = false;
  s.recompute = {RecomputeKind::kFull, RecomputeKind::kCore, RecomputeKind::kNone};
  s.tp_forms = {TpForm::kAllReduce, TpForm::kScatteredHops, TpForm::kSequenceParallel};
  s.keeps_gathered = true;
  s.tiers = {NetworkTier::kNvlink, NetworkTier::kNic};
  s.tp_overlap = {TpOverlap::kNone};
  s.dp_overlap = {DpOverlap::kNone};
  return s;
}

SearchSpace calculon_offload_space(const ModelShape& model, double devices, double max_batch) {
  SearchSpace s = calculon_space(model, devices, max_batch);
  s.tp_overlap = {TpOverlap::kNone, TpOverlap::kRing, TpOverlap::kPipe};
  s.dp_overlap = {DpOverlap::kNone, DpOverlap::kBackward};
  s.offload = true;
  return s;
}

}  // namespace meshwright
