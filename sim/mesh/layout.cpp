// SPDX-License-Identifier: Apache-2.0
#include "sim/mesh/layout.h"

#include <fmt/format.h>

#include <charconv>
#include <numeric>

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

}  // namespace

std::string_view to_string(ScheduleKind s) {
  static constexpr std::string_view kNames[kNumScheduleKinds] = {
      "gpipe", "1f1b", "interleaved", "zb_h1", "zb_h2", "zb_v", "dualpipe"};
  return kNames[static_cast<int>(s)];
}

std::optional<ScheduleKind> schedule_named(std::string_view name) {
  for (int i = 0; i < kNumScheduleKinds; ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    if (to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (int i = 0; i < kNumScheduleKinds; ++i)
    names.emplace_back(to_string(static_cast<ScheduleKind>(i)));
  return names;
}

int64_t min_micro_batches(ScheduleKind kind, int num_ranks) {
  switch (kind) {
    case ScheduleKind::kGpipe:
    case ScheduleKind::k1f1b:
      return 1;
    case ScheduleKind::kInterleaved:
    case ScheduleKind::kZbH1:
      return num_ranks;
    case ScheduleKind::kZbH2:
    case ScheduleKind::kZbV:
      return 2 * int64_t{num_ranks} - 1;
    case ScheduleKind::kDualPipe:
      return 2 * int64_t{num_ranks};
  }
  return 1;
}

std::string summary(const Layout& l) {
  std::string text;
  if (l.dp_shard == 1 || l.dp_replicate == 1) {
    text += fmt::format("dp{}", l.dp());
  } else {
    text += fmt::format("dp{}x{}", l.dp_replicate, l.dp_shard);
  }
  text += fmt::format(" tp{}{} pp{}", l.tp, l.sp ? " sp" : "", l.pp);
  text += fmt::format(" mb{}", l.micro_batch);
  if (l.zero_stage > 0) text += fmt::format(" zero{}", l.zero_stage);
  if (l.pp > 1) text += fmt::format(" {}", to_string(l.schedule));
  if (l.virtual_stages > 1) text += fmt::format(" v{}", l.virtual_stages);
  if (l.recompute == Recompute::kSelective) text += " recompute=selective";
  if (l.recompute == Recompute::kFull) text += " recompute";
  if (!l.flash_attention) text += " noflash";
  const int64_t layers = std::accumulate(l.stages.begin(), l.stages.end(), int64_t{0});
  if (l.pp > 1 && !l.stages.empty() && l.stages != balanced_stages(layers, l.num_parts())) {
    text += fmt::format(" stages {}", fmt::join(l.stages, "+"));
  }
  return text;
}

std::optional<Recompute> parse_recompute(std::string_view word) {
  for (const Recompute r : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    if (word == to_string(r)) return r;
  }
  return std::nullopt;
}

std::vector<int> balanced_stages(int64_t num_layers, int num_parts) {
  std::vector<int> stages(static_cast<size_t>(num_parts), static_cast<int>(num_layers / num_parts));
  int64_t rest = num_layers % num_parts;
  for (int s = 1; s + 1 < num_parts && rest > 0; ++s, --rest) ++stages[static_cast<size_t>(s)];
  if (rest > 0) ++stages.front(), --rest;
  if (rest > 0) ++stages.back();
  return stages;
}

Result<LayoutPins> parse_layout_pins(const std::string& layout_flag,
                                     const std::string& stages_flag) {
  static const std::vector<std::string> kAxes = {"dp",
                                                 "dp_replicate",
                                                 "dp_shard",
                                                 "tp",
                                                 "sp",
                                                 "cp",
                                                 "pp",
                                                 "ep",
                                                 "virtual_stages",
                                                 "micro_batch",
                                                 "zero_stage",
                                                 "recompute",
                                                 "flash_attention",
                                                 "schedule"};
  LayoutPins pins;
  for (const std::string& item : split(layout_flag, ',')) {
    if (item.empty()) continue;
    const size_t eq = item.find('=');
    const std::string axis = item.substr(0, eq);
    const std::string value = eq == std::string::npos ? "" : item.substr(eq + 1);
    if (axis == "sp") {
      if (value != "on" && value != "off") return bad_pin(axis, value, "must be on or off");
      pins.sp = value == "on";
    } else if (axis == "flash_attention") {
      if (value != "on" && value != "off") return bad_pin(axis, value, "must be on or off");
      pins.flash_attention = value == "on";
    } else if (axis == "recompute") {
      pins.recompute = parse_recompute(value);
      if (!pins.recompute) return bad_pin(axis, value, "must be none, selective or full");
    } else if (axis == "schedule") {
      pins.schedule = schedule_named(value);
      if (!pins.schedule) {
        const auto near = nearest_word(value, schedule_names());
        return bad_pin(axis,
                       value,
                       "must be one of " + join(schedule_names()),
                       near ? "did you mean " + *near + "?" : "");
      }
    } else if (axis == "micro_batch") {
      MW_ASSIGN_OR_RETURN(pins.micro_batch, parse_degree("--layout", axis, value, 1));
    } else {
      std::optional<int>* slot = axis == "dp"               ? &pins.dp
                                 : axis == "dp_replicate"   ? &pins.dp_replicate
                                 : axis == "dp_shard"       ? &pins.dp_shard
                                 : axis == "tp"             ? &pins.tp
                                 : axis == "cp"             ? &pins.cp
                                 : axis == "pp"             ? &pins.pp
                                 : axis == "ep"             ? &pins.ep
                                 : axis == "virtual_stages" ? &pins.virtual_stages
                                 : axis == "zero_stage"     ? &pins.zero_stage
                                                            : nullptr;
      if (slot == nullptr) {
        const auto near = nearest_word(axis, kAxes);
        return bad_pin(axis,
                       value,
                       "is not an axis of a layout",
                       near ? "did you mean " + *near + "?" : "axes: " + join(kAxes));
      }
      MW_ASSIGN_OR_RETURN(const int64_t degree,
                          parse_degree("--layout", axis, value, axis == "zero_stage" ? 0 : 1));
      *slot = static_cast<int>(degree);
    }
  }
  if (!stages_flag.empty()) {
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

}  // namespace meshwright
