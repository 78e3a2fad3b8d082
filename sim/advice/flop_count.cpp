// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/flop_count.h"

#include <algorithm>

#include "sim/graph/model_graph.h"
#include "sim/spec/lora.h"

namespace meshwright {
namespace {

constexpr FlopDefinition kFlopDefinitions[] = {
    FlopDefinition::kModel, FlopDefinition::kHardware, FlopDefinition::kCausal};

/// Share of the layers that repeat their forward.
double recomputed_share(const Plan& plan) {
  int64_t repeats = 0;
  for (const int layers : plan.layout().stages) {
    for (int i = 0; i < layers; ++i) repeats += plan.layout().recomputes(i) ? 1 : 0;
  }
  return static_cast<double>(repeats) / static_cast<double>(plan.model().num_layers);
}

double adapter_count(const ModelSpec& model, int rank) {
  double n = 0;
  for (const LogicalTensor& t : adapter_tensors(model, rank)) n += static_cast<double>(t.numel());
  return n;
}

}  // namespace

std::string_view to_string(FlopDefinition definition) {
  switch (definition) {
    case FlopDefinition::kModel:
      return "model";
    case FlopDefinition::kHardware:
      return "hardware";
    case FlopDefinition::kCausal:
      return "causal";
  }
  return "";
}

std::optional<FlopDefinition> flop_definition_named(std::string_view name) {
  for (const FlopDefinition d : kFlopDefinitions) {
    if (to_string(d) == name) return d;
  }
  return std::nullopt;
}

std::vector<std::string> flop_definition_names() {
  std::vector<std::string> names;
  for (const FlopDefinition d : kFlopDefinitions) names.emplace_back(to_string(d));
  return names;
}

Flop FlopCount::of(FlopDefinition definition) const {
  switch (definition) {
    case FlopDefinition::kModel:
      return model;
    case FlopDefinition::kHardware:
      return hardware;
    case FlopDefinition::kCausal:
      return causal;
  }
  return model;
}

FlopCount step_flop(const Plan& plan) {
  const ModelSpec& m = plan.model();
  const Workload& w = plan.workload();
  const auto tokens = static_cast<double>(w.tokens_per_step());
  const double all = model_flop_per_token(m, 0).v;  // 6 W
  const double half_attention = (model_flop_per_token(m, w.seq_len).v - all) * w.attention_span() /
                                static_cast<double>(w.seq_len);  // 6 A
  // Low-rank adapters: the frozen weights have no gradient, forward 2 and backward 2.
  const double adapters = w.lora ? 6 * adapter_count(m, w.lora->rank) : 0.0;
  const double weights = w.lora ? all * (4.0 / 6) + adapters : all;
  // Forward of the layers, that full recompute repeats; the head is in no layer.
  const double head = 6.0 * static_cast<double>(m.vocab_size) * static_cast<double>(m.d_model);
  const double forward = (all - head + adapters + 2 * half_attention) / 3;
  double repeated = 0;
  if (plan.layout().recompute == Recompute::kFull) repeated = forward;
  // Selective keeps the attention's output and repeats the scores alone, the whole square.
  if (plan.layout().recompute == Recompute::kSelective) {
    repeated = 2.0 * static_cast<double>(m.num_layers * m.num_heads * m.head_dim) *
               static_cast<double>(w.seq_len);
  }
  const double model = weights + 2 * half_attention;
  return {.model = Flop{model * tokens},
          .hardware = Flop{(model + recomputed_share(plan) * repeated) * tokens},
          .causal = Flop{(weights + half_attention) * tokens}};
}

Utilization utilization(const Plan& plan,
                        const CostModel& cost,
                        Seconds step_time,
                        FlopDefinition definition) {
  const FlopCount flop = step_flop(plan);
  const int devices = plan.cluster().shared_cores
                          ? std::min(plan.world_size(), *plan.cluster().shared_cores)
                          : plan.world_size();
  const FlopPerSecond peak = cost.peak(plan.layout().precision) * devices;
  const auto fraction = [&](FlopDefinition d) { return flop.of(d) / step_time / peak; };
  const FlopDefinition of_model =
      definition == FlopDefinition::kCausal ? FlopDefinition::kCausal : FlopDefinition::kModel;
  return {.mfu_definition = of_model,
          .mfu = fraction(of_model),
          .hfu = fraction(FlopDefinition::kHardware)};
}

}  // namespace meshwright
