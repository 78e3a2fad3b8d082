// SPDX-License-Identifier: Apache-2.0
#include "sim/mesh/stage_map.h"

#include "sim/core/check.h"

namespace meshwright {
namespace {

int rank_of_part(StageOrder order, int part, int copy, int pp) {
  switch (order) {
    case StageOrder::kLoop:
      return part % pp;
    case StageOrder::kV:
      return part < pp ? part : 2 * pp - 1 - part;
    case StageOrder::kMirrored:
      return copy == 0 ? part : pp - 1 - part;
  }
  return -1;
}

}  // namespace

StageMap::StageMap(const Layout& l) : of_rank_(static_cast<size_t>(l.pp)) {
  const int parts = l.num_parts();
  MW_CHECK(static_cast<int>(l.stages.size()) == parts, "a layout without its stages");
  for (int copy = 0; copy < l.model_copies(); ++copy) {
    int block = 0;
    for (int part = 0; part < parts; ++part) {
      VirtualStage v{.rank = rank_of_part(stage_order(l.schedule), part, copy, l.pp),
                     .copy = copy,
                     .block_begin = block};
      block += l.stages[static_cast<size_t>(part)];
      if (part == 0) ++block;          // the embedding
      if (part + 1 == parts) ++block;  // the head
      v.block_end = block;
      const int id = size();
      if (part > 0) v.previous = id - 1;
      if (part + 1 < parts) v.next = id + 1;
      of_rank_[static_cast<size_t>(v.rank)].push_back(id);
      stages_.push_back(v);
    }
  }
}

}  // namespace meshwright
