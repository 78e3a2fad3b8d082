// SPDX-License-Identifier: Apache-2.0
#include "sim/advice/decision_flow.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/advice/least_memory.h"
#include "sim/core/text.h"
#include "sim/spec/logical_tensors.h"
#include "sim/spec/lora.h"

namespace meshwright {
namespace {

class FlowBuilder {
 public:
  FlowBuilder(std::shared_ptr<const Problem> problem, const CostModel& cost)
      : p_(std::move(problem)),
        cost_(cost),
        parameters_(static_cast<double>(parameter_count(p_->model))),
        states_(state_bytes({.precision = p_->workload.precision})),
        node_(std::min(p_->cluster.devices_per_node, p_->cluster.num_devices)) {
    if (!p_->workload.lora) return;
    for (const LogicalTensor& t : adapter_tensors(p_->model, p_->workload.lora->rank))
      adapters_ += static_cast<double>(t.numel());
  }

  [[nodiscard]] FlowStep one_device() const {
    FlowStep s =
        step(Strategy::kDdp, "Does it fit one device?", least_memory(p_, cost_, 1, 1, false));
    s.evidence = fmt::format("{} = {}{}; a device has {}",
                             holdings(),
                             show(states(0, 1)),
                             with_activations(s),
                             show(s.available));
    if (p_->workload.lora) return s;
    s.note =
        "each DDP rank holds all of it (16 B per parameter with BF16 gradients, 18 with FP32 "
        "ones); the 560 GB often quoted for 70 B is Adam's 8 B alone";
    return s;
  }

  [[nodiscard]] FlowStep one_node() const {
    auto part = std::make_shared<Problem>(*p_);
    part->cluster = with_devices(p_->cluster, node_);
    const auto least = least_memory(part, cost_.with_cluster(part->cluster), 1, 1, true);
    FlowStep s = step(Strategy::kSharded, "Does it fit one node with sharded states?", least);
    const int stage = least ? least->layout.zero_stage : 0;
    s.evidence =
        fmt::format("ZeRO-{} over {} devices leaves {} of states per device{}; a device has {}",
                    stage,
                    node_,
                    show(states(stage, node_)),
                    with_activations(s),
                    show(s.available));
    s.note = "FSDP moves 3 M per step where DDP moves 2 M: 1.5 times as much, not 3 times";
    return s;
  }

  [[nodiscard]] FlowStep tensor_parallel() const {
    const auto least = least_memory(p_, cost_, node_, 1);
    FlowStep s =
        step(Strategy::kTensorSharded,
             fmt::format("Does it fit with tensor parallelism inside a node (tp <= {}) and "
                         "sharded states?",
                         node_),
             least);
    s.evidence = least ? fmt::format("{} needs {}; a device has {}",
                                     summary(least->layout),
                                     show(least->peak),
                                     show(s.available))
                       : "no such layout is legal";
    return s;
  }

  [[nodiscard]] FlowStep pipeline() const {
    const auto max_pp = std::min<int64_t>(p_->model.num_layers, p_->cluster.num_devices);
    const auto least = least_memory(p_, cost_, node_, static_cast<int>(max_pp));
    FlowStep s = step(Strategy::kPipeline, "Does it fit with pipeline stages?", least);
    s.evidence = least ? fmt::format("{} needs {}; a device has {}",
                                     summary(least->layout),
                                     show(least->peak),
                                     show(s.available))
                       : "no such layout is legal";
    return s;
  }

 private:
  [[nodiscard]] FlowStep step(Strategy leads_to,
                              std::string question,
                              const std::optional<LeastMemory>& least) const {
    FlowStep s;
    s.leads_to = leads_to;
    s.question = std::move(question);
    s.available = p_->cluster.capacity();
    s.needed = least ? least->peak : Bytes{};
    s.yes = least && least->peak <= s.available;
    return s;
  }
  [[nodiscard]] Bytes states(int stage, double ranks) const {
    const double trained = sharded_state_bytes(states_, stage, ranks);
    if (!p_->workload.lora) return Bytes{parameters_ * trained};
    return Bytes{adapters_ * trained + parameters_ * frozen() / (stage >= 3 ? ranks : 1)};
  }
  /// Bytes of a frozen weight under low-rank adapters.
  [[nodiscard]] double frozen() const {
    return frozen_weight_bytes(p_->workload.lora->base, states_.weight);
  }
  [[nodiscard]] std::string holdings() const {
    const double bytes = sharded_state_bytes(states_, 0, 1);
    if (p_->workload.lora) {
      return fmt::format(
          "frozen weights of {:.3g} B x {:.4g} B parameters and adapters of {:.0f} B x "
          "{:.3g} B",
          frozen(),
          parameters_ / 1e9,
          bytes,
          adapters_ / 1e9);
    }
    return fmt::format("weights, gradients and optimizer state take {:.0f} B x {:.4g} B parameters",
                       bytes,
                       parameters_ / 1e9);
  }
  [[nodiscard]] static std::string with_activations(const FlowStep& s) {
    return s.needed > Bytes{} ? ", with activations at least " + show(s.needed) : "";
  }

  std::shared_ptr<const Problem> p_;
  const CostModel& cost_;
  double parameters_;
  double adapters_ = 0;
  StateBytes states_;
  int node_;
};

/// The fastest layout of a strategy: of the search, and of each ZeRO stage that the search leaves
/// out.
std::optional<RankedPlan> best_of(const std::shared_ptr<const Problem>& problem,
                                  const CostModel& cost,
                                  const LayoutPins& pins,
                                  const PlannerResult& found,
                                  Strategy strategy) {
  std::optional<RankedPlan> best;
  const auto offer = [&](RankedPlan plan) {
    if (!best || plan.simulation.report.step_time < best->simulation.report.step_time)
      best = std::move(plan);
  };
  const int node = problem->cluster.devices_per_node;
  for (const Candidate& c : found.all_feasible) {
    if (!follows(c.plan.layout(), strategy, node)) continue;
    offer({c.plan, simulate(c.plan, cost)});
    break;
  }
  if (strategy != Strategy::kSharded && strategy != Strategy::kTensorSharded) return best;
  for (const int stage : {2, 3}) {
    if (pins.zero_stage && *pins.zero_stage != stage) continue;
    PlannerOptions options{.top_k = 1, .pins = pins, .progress = {}};
    options.pins.zero_stage = stage;
    options.pins.pp = 1;
    if (strategy == Strategy::kSharded) options.pins.tp = 1;
    PlannerResult more = plan_layouts(problem, cost, options);
    for (RankedPlan& p : more.plans) {
      if (follows(p.plan.layout(), strategy, node)) offer(std::move(p));
    }
  }
  return best;
}

}  // namespace

std::string_view to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::kDdp:
      return "DDP";
    case Strategy::kSharded:
      return "FSDP / ZeRO";
    case Strategy::kTensorSharded:
      return "TP + ZeRO";
    case Strategy::kPipeline:
      return "PP + TP + ZeRO";
    case Strategy::kNone:
      break;
  }
  return "nothing";
}

bool follows(const Layout& l, Strategy strategy, int devices_per_node) {
  switch (strategy) {
    case Strategy::kDdp:
      return l.tp == 1 && l.pp == 1 && l.zero_stage == 0;
    case Strategy::kSharded:
      return l.tp == 1 && l.pp == 1;
    case Strategy::kTensorSharded:
      return l.pp == 1 && l.tp <= devices_per_node;
    case Strategy::kPipeline:
      return l.tp <= devices_per_node;
    case Strategy::kNone:
      break;
  }
  return false;
}

DecisionFlow decide(const std::shared_ptr<const Problem>& problem,
                    const CostModel& cost,
                    const LayoutPins& pins,
                    const PlannerResult& found) {
  const FlowBuilder builder(problem, cost);
  DecisionFlow flow;
  const auto ask = [&](const FlowStep& s) {
    if (flow.strategy != Strategy::kNone) return;
    flow.steps.push_back(s);
    if (s.yes) flow.strategy = s.leads_to;
  };
  ask(builder.one_device());
  if (problem->cluster.num_devices > 1) {
    ask(builder.one_node());
    ask(builder.tensor_parallel());
    ask(builder.pipeline());
  }
  flow.best = best_of(problem, cost, pins, found, flow.strategy);
  return flow;
}

}  // namespace meshwright
