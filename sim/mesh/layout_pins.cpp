// SPDX-License-Identifier: Apache-2.0
#include "sim/mesh/layout_pins.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>

#include "sim/core/text.h"

namespace meshwright {
namespace {

Error bad_pin(const std::string& field,
              const std::string& value,
              std::string rule,
              std::string remedy = "") {
  return Error{.where = "--layout",
               .field = field,
               .value = value,
               .rule = std::move(rule),
               .remedy = std::move(remedy)};
}

Result<int64_t> parse_degree(const std::string& flag,
                             const std::string& field,
                             const std::string& value,
                             int64_t min) {
  int64_t x = 0;
  const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), x);
  if (ec != std::errc{} || end != value.data() + value.size() || x < min || x > 1000000) {
    Error e = bad_pin(field,
                      value.empty() ? "(nothing)" : value,
                      fmt::format("must be a whole number from {} to 1000000", min));
    e.where = flag;
    return e;
  }
  return x;
}

using P = LayoutPins;
/// Where an axis' value goes; its type says how the value is written.
using Slot = std::variant<std::optional<int> P::*,
                          std::optional<int64_t> P::*,
                          std::optional<bool> P::*,
                          std::optional<CpKind> P::*,
                          std::optional<Recompute> P::*,
                          std::optional<ScheduleKind> P::*,
                          std::optional<GradientFormat> P::*,
                          std::optional<MomentFormat> P::*,
                          std::optional<MemoryTier> P::*>;

/// In the order in which a suggestion prefers them.
const std::vector<std::pair<std::string, Slot>>& axes() {
  static const std::vector<std::pair<std::string, Slot>> kAxes{
      {"dp", &P::dp},
      {"dp_replicate", &P::dp_replicate},
      {"dp_shard", &P::dp_shard},
      {"tp", &P::tp},
      {"sp", &P::sp},
      {"cp", &P::cp},
      {"cp_kind", &P::cp_kind},
      {"pp", &P::pp},
      {"ep", &P::ep},
      {"expert_tp", &P::expert_tp},
      {"virtual_stages", &P::virtual_stages},
      {"micro_batch", &P::micro_batch},
      {"zero_stage", &P::zero_stage},
      {"prefetch", &P::prefetch},
      {"reshard", &P::reshard},
      {"persistence_threshold", &P::persistence_threshold},
      {"reduce_bucket", &P::reduce_bucket},
      {"recompute", &P::recompute},
      {"recompute_layers", &P::recompute_layers},
      {"flash_attention", &P::flash_attention},
      {"schedule", &P::schedule},
      {"gradients", &P::gradients},
      {"moments", &P::moments},
      {"offload_optimizer", &P::offload_optimizer},
      {"offload_parameters", &P::offload_parameters},
      {"offload_activations", &P::offload_activations},
  };
  return kAxes;
}

/// A choice by its word.
template <class Names, class E>
Result<Ok> read_word(const Names& names,
                     const std::string& axis,
                     const std::string& value,
                     std::optional<E>& out) {
  out = names.parse(value);
  if (out) return Ok{};
  const auto near = nearest_word(value, names.list());
  return bad_pin(axis,
                 value.empty() ? "(nothing)" : value,
                 "must be one of " + join(names.list()),
                 near ? "did you mean " + *near + "?" : "");
}

/// Reads one value into the slot it belongs to.
struct SlotReader {
  LayoutPins& pins;
  const std::string& axis;
  const std::string& value;

  Result<Ok> operator()(std::optional<int> P::*slot) const {
    const bool from_zero = axis == "zero_stage" || axis == "prefetch" || axis == "recompute_layers";
    MW_ASSIGN_OR_RETURN(const int64_t n, parse_degree("--layout", axis, value, from_zero ? 0 : 1));
    pins.*slot = static_cast<int>(n);
    return Ok{};
  }
  Result<Ok> operator()(std::optional<int64_t> P::*slot) const {
    MW_ASSIGN_OR_RETURN(pins.*slot,
                        parse_degree("--layout", axis, value, axis == "micro_batch" ? 1 : 0));
    return Ok{};
  }
  Result<Ok> operator()(std::optional<bool> P::*slot) const {
    if (value != "on" && value != "off") return bad_pin(axis, value, "must be on or off");
    pins.*slot = value == "on";
    return Ok{};
  }
  Result<Ok> operator()(std::optional<CpKind> P::*slot) const {
    return read_word(kCpKindNames, axis, value, pins.*slot);
  }
  Result<Ok> operator()(std::optional<Recompute> P::*slot) const {
    return read_word(kRecomputeNames, axis, value, pins.*slot);
  }
  Result<Ok> operator()(std::optional<ScheduleKind> P::*slot) const {
    return read_word(kScheduleNames, axis, value, pins.*slot);
  }
  Result<Ok> operator()(std::optional<GradientFormat> P::*slot) const {
    return read_word(kGradientFormatNames, axis, value, pins.*slot);
  }
  Result<Ok> operator()(std::optional<MomentFormat> P::*slot) const {
    return read_word(kMomentFormatNames, axis, value, pins.*slot);
  }
  Result<Ok> operator()(std::optional<MemoryTier> P::*slot) const {
    return read_word(kMemoryTierNames, axis, value, pins.*slot);
  }
};

}  // namespace

Result<LayoutPins> parse_layout_pins(const std::string& layout_flag,
                                     const std::string& stages_flag) {
  LayoutPins pins;
  for (const std::string& item : split(layout_flag, ',')) {
    if (item.empty()) continue;
    const size_t eq = item.find('=');
    const std::string axis = item.substr(0, eq);
    const std::string value = eq == std::string::npos ? "" : item.substr(eq + 1);
    const auto slot =
        std::find_if(axes().begin(), axes().end(), [&](const auto& a) { return a.first == axis; });
    if (slot == axes().end()) {
      std::vector<std::string> names;
      for (const auto& [name, unused] : axes()) names.push_back(name);
      const auto near = nearest_word(axis, names);
      return bad_pin(axis,
                     value,
                     "is not an axis of a layout",
                     near ? "did you mean " + *near + "?" : "axes: " + join(names));
    }
    MW_RETURN_IF_ERROR(std::visit(SlotReader{pins, axis, value}, slot->second));
  }
  pins.balance = stages_flag == "balanced";
  if (!stages_flag.empty() && !pins.balance) {
    pins.stages.emplace();
    for (const std::string& item : split(stages_flag, ',')) {
      MW_ASSIGN_OR_RETURN(const int64_t layers, parse_degree("--stages", "stages", item, 0));
      pins.stages->push_back(static_cast<int>(layers));
    }
    const int parts_per_rank =
        pins.virtual_stages.value_or(pins.schedule == ScheduleKind::kZbV ? 2 : 1);
    if (!pins.pp) pins.pp = static_cast<int>(pins.stages->size()) / parts_per_rank;
  }
  return pins;
}

void apply_fixed_choices(const LayoutPins& pins, Layout& l) {
  l.prefetch = pins.prefetch.value_or(l.prefetch);
  l.reshard = pins.reshard.value_or(l.reshard);
  l.persistence_threshold = pins.persistence_threshold.value_or(l.persistence_threshold);
  l.reduce_bucket = pins.reduce_bucket.value_or(l.reduce_bucket);
  l.recompute_layers = pins.recompute_layers.value_or(l.recompute_layers);
  l.flash_attention = pins.flash_attention.value_or(l.flash_attention);
  l.gradients = pins.gradients.value_or(l.gradients);
  l.moments = pins.moments.value_or(l.moments);
  l.offload = {.optimizer = pins.offload_optimizer.value_or(l.offload.optimizer),
               .parameters = pins.offload_parameters.value_or(l.offload.parameters),
               .activations = pins.offload_activations.value_or(l.offload.activations)};
  if (pins.stages) l.stages = *pins.stages;
}

}  // namespace meshwright
