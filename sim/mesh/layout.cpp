// SPDX-License-Identifier: Apache-2.0
#include "sim/mesh/layout.h"

#include <fmt/format.h>

#include <charconv>

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
  if (l.recompute == Recompute::kSelective) text += " recompute=selective";
  if (l.recompute == Recompute::kFull) text += " recompute";
  if (!l.flash_attention) text += " noflash";
  if (l.pp > 1 && l.stages != balanced_stages(
                                  [&] {
                                    int64_t sum = 0;
                                    for (const int s : l.stages) sum += s;
                                    return sum;
                                  }(),
                                  l.pp)) {
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

std::vector<int> balanced_stages(int64_t num_layers, int pp) {
  std::vector<int> stages(static_cast<size_t>(pp), static_cast<int>(num_layers / pp));
  int64_t rest = num_layers % pp;
  for (int s = 1; s + 1 < pp && rest > 0; ++s, --rest) ++stages[static_cast<size_t>(s)];
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
      if (value != "gpipe" && value != "1f1b") return bad_pin(axis, value, "must be gpipe or 1f1b");
      pins.schedule = value == "gpipe" ? ScheduleKind::kGpipe : ScheduleKind::k1f1b;
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
    if (!pins.pp) pins.pp = static_cast<int>(pins.stages->size());
  }
  return pins;
}

}  // namespace meshwright
