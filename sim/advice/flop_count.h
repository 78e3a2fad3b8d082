// FLOP of a step by three definitions, and the two utilisations that are made of them.
//
// Reads: a Plan. Feeds: plan, explain, simulate (--flops). A utilisation says which FLOP it
// counts: MFU from model FLOP (what the mathematics needs, with the full attention matrix or its
// causal half), HFU from hardware FLOP (what recompute repeats counted again). They are never
// mixed: full recompute raises HFU by a third and MFU not at all.
//
// Ignored: that flash attention recomputes the scores inside its own backward (no definition in
// use counts it), that our worker's full recompute leaves out the last projection of a layer,
// element-wise work, and the optimizer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/cost_model.h"
#include "sim/plan/plan.h"

namespace meshwright {

/// With low-rank adapters beside frozen weights 4 W + 6 per adapter weight takes the place of 6 W.
/// `W` matmul weights that a token meets, `A` = L N H S: attention of one token over the whole
/// sequence, or, of packed documents, over Workload::attention_span().
enum class FlopDefinition : uint8_t {
  kModel,     ///< 6 W + 12 A per token: PaLM (arXiv:2204.02311 app. B), Megatron eq. 3.
  kHardware,  ///< kModel and the forward that recompute repeats (arXiv:2104.04473 eq. 3: 96 BsLhh).
  kCausal,    ///< 6 W + 6 A: the half of the scores that a causal mask keeps.
};

/// "model", "hardware", "causal".
[[nodiscard]] std::string_view to_string(FlopDefinition definition);
[[nodiscard]] std::optional<FlopDefinition> flop_definition_named(std::string_view name);
[[nodiscard]] std::vector<std::string> flop_definition_names();

/// FLOP of one step of the whole job; multiply and add count as two.
struct FlopCount {
  Flop model;
  Flop hardware;
  Flop causal;
  [[nodiscard]] Flop of(FlopDefinition definition) const;
};
[[nodiscard]] FlopCount step_flop(const Plan& plan);

/// Fractions of the devices' peak, 0..1.
struct Utilization {
  /// What `mfu` counts: kModel or kCausal, never kHardware.
  FlopDefinition mfu_definition = FlopDefinition::kModel;
  double mfu = 0;
  double hfu = 0;  ///< Always of kHardware.
};

/// Of a step that takes `step_time`. Under `definition` kHardware the figure to look at is hfu, and
/// mfu stays that of kModel. The peak is CostModel::peak() of every device; of FP8 plans that
/// of BF16; ranks that share cores have the peak of the cores.
[[nodiscard]] Utilization utilization(const Plan& plan,
                                      const CostModel& cost,
                                      Seconds step_time,
                                      FlopDefinition definition);

}  // namespace meshwright
