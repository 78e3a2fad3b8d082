// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/lora.h"

#include <utility>

namespace meshwright {

bool has_adapters(ParamRole role) {
  switch (role) {
    case ParamRole::kQuery:
    case ParamRole::kKey:
    case ParamRole::kValue:
    case ParamRole::kQueryDown:
    case ParamRole::kQueryUp:
    case ParamRole::kKvDown:
    case ParamRole::kKvUp:
    case ParamRole::kAttnOut:
    case ParamRole::kGate:
    case ParamRole::kUp:
    case ParamRole::kDown:
    case ParamRole::kSharedGate:
    case ParamRole::kSharedUp:
    case ParamRole::kSharedDown:
      return true;
    default:
      return false;
  }
}

std::vector<LogicalTensor> adapter_tensors(const ModelSpec& model, int rank) {
  std::vector<LogicalTensor> all;
  std::vector<LogicalTensor> ups;  // of the block at hand
  const auto flush = [&] {
    for (LogicalTensor& t : ups) all.push_back(std::move(t));
    ups.clear();
  };
  for (const LogicalTensor& base : logical_tensors(model)) {
    if (!has_adapters(base.role)) continue;
    if (!ups.empty() && ups.front().block != base.block) flush();
    LogicalTensor t{.name = base.name + ".lora_A",
                    .shape = {rank, base.shape[1]},
                    .block = base.block,
                    .role = base.role,
                    .adapter = AdapterHalf::kDown};
    all.push_back(t);
    t.name = base.name + ".lora_B";
    t.shape = {base.shape[0], rank};
    t.adapter = AdapterHalf::kUp;
    ups.push_back(std::move(t));
  }
  flush();
  return all;
}

}  // namespace meshwright
