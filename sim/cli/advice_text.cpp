// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/advice_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/text.h"

namespace meshwright::cli {
namespace {

/// To three digits, away from today's value: what is printed lies beyond the crossing.
double rounded_beyond(double x, bool upwards) {
  const double unit = std::pow(10.0, std::floor(std::log10(x)) - 2);
  return (upwards ? std::ceil(x / unit) : std::floor(x / unit)) * unit;
}

std::string crossing_words(const Crossing& c) {
  if (c.knob == Knob::kInterNodeBandwidth) {
    return fmt::format("{} {:.3g} GB/s between nodes (now {:.3g})",
                       c.upwards ? "above" : "below",
                       rounded_beyond(*c.flip, c.upwards) / 1e9,
                       c.now / 1e9);
  }
  return fmt::format("with a batch of {:.0f} sequences or {} (now {:.0f})",
                     *c.flip,
                     c.upwards ? "more" : "fewer",
                     c.now);
}

std::string crossings_line(const std::vector<Crossing>& crossings) {
  std::vector<std::string> wins;
  std::vector<std::string> never;
  for (const Knob knob : {Knob::kInterNodeBandwidth, Knob::kGlobalBatch}) {
    double low = 0;
    double high = 0;
    bool flips = false;
    for (const Crossing& c : crossings) {
      if (c.knob != knob) continue;
      if (low == 0) low = high = c.now;
      (c.upwards ? high : low) = c.bound;
      if (!c.flip) continue;
      wins.push_back(crossing_words(c));
      flips = true;
    }
    if (flips || low == 0) continue;
    never.push_back(
        knob == Knob::kInterNodeBandwidth
            ? fmt::format("bandwidth alone ({:.3g} to {:.3g} GB/s tried)", low / 1e9, high / 1e9)
            : fmt::format("batch alone ({:.0f} to {:.0f} sequences tried)", low, high));
  }
  std::string text;
  if (!wins.empty()) text += fmt::format("wins {}", fmt::join(wins, ", or "));
  if (!never.empty()) {
    text += fmt::format("{}not by {}", text.empty() ? "" : "; ", fmt::join(never, ", nor by "));
  }
  return text;
}

std::string change(double now, double then) {
  const double percent = 100 * (then / now - 1);
  return fmt::format("{:.1f} % {}", std::abs(percent), percent < 0 ? "faster" : "slower");
}

/// Time of a remedy's step, per token, on the batch of `plan`.
Seconds per_own_batch(const Plan& plan, const Variant& v) {
  return v.step_time * (static_cast<double>(plan.workload().tokens_per_step()) /
                        static_cast<double>(v.plan.workload().tokens_per_step()));
}

/// Whether it brings what its finding asks for: memory, or time.
bool helps(const Finding& f, const Plan& plan, Seconds step_time, Bytes peak, const Remedy& r) {
  constexpr double kNoticeable = 0.995;
  if (!r.result) return true;
  if (f.id == "recompute") return true;  // what it costs is the question
  if (f.id == "memory") return r.result->peak < peak * kNoticeable;
  return per_own_batch(plan, *r.result) < step_time * kNoticeable;
}

std::string remedy_line(const Plan& plan, Seconds step_time, Bytes peak, const Remedy& r) {
  if (!r.result) return fmt::format("      {}: {}\n", r.action, r.effect);
  const Variant& v = *r.result;
  const bool other_batch = v.plan.workload().tokens_per_step() != plan.workload().tokens_per_step();
  return fmt::format(
      "      {:<34} {:>9} instead of {} ({}{}), {} instead of {}{}\n",
      r.action,
      show(v.step_time),
      show(step_time),
      change(step_time.v, per_own_batch(plan, v).v),
      other_batch ? " per token" : "",
      show(v.peak),
      show(peak),
      v.fits() ? "" : fmt::format(": does not fit {}", show(v.plan.cluster().capacity())));
}

/// The figure that the two devices' data sheets are most often confused in.
std::string peak_note(const std::vector<DeviceRow>& rows) {
  const DeviceSpec* h100 = nullptr;
  const DeviceSpec* a100 = nullptr;
  for (const DeviceRow& r : rows) {
    if (r.cluster.device.name == "h100") h100 = &r.cluster.device;
    if (r.cluster.device.name == "a100-80g") a100 = &r.cluster.device;
  }
  if (h100 == nullptr || a100 == nullptr) return "";
  return fmt::format(
      "  note: h100 peaks at {:.0f} TFLOP/s in BF16 without sparsity, {:.1f} times a100-80g's "
      "{:.0f}; "
      "1,979 is its sparse figure\n",
      h100->peak_bf16.v / 1e12,
      h100->peak_bf16 / a100->peak_bf16,
      a100->peak_bf16.v / 1e12);
}

std::string price_column(const std::optional<Dollars>& per_step) {
  return per_step ? show(*per_step) : "unknown";
}

}  // namespace

std::string challenges_text(const RankedPlan& winner, const std::vector<Challenge>& challenges) {
  std::string text;
  for (const Challenge& c : challenges) {
    const StepReport& best = winner.simulation.report;
    const StepReport& other = c.plan.simulation.report;
    const auto term = deciding_term(best, other);
    text +=
        fmt::format("  {} (other {}): {}, {}{}\n",
                    summary(c.plan.plan.layout()),
                    fmt::join(c.differs_in, ", "),
                    show(other.step_time),
                    change(best.step_time.v, other.step_time.v),
                    term ? fmt::format(", {} of {}", show(term->difference), key(term->term)) : "");
    const std::string line = crossings_line(c.crossings);
    if (!line.empty()) text += "      " + line + "\n";
  }
  return text;
}

std::string memory_challenges_text(const RankedPlan& winner,
                                   const std::vector<MemoryChallenge>& challenges) {
  const Seconds now = winner.simulation.report.step_time;
  std::string text;
  for (const MemoryChallenge& m : challenges) {
    text += fmt::format("  {}: {} instead of {} ({}), if a device had {} (now {})\n",
                        summary(m.plan.layout()),
                        show(m.step_time),
                        show(now),
                        change(now.v, m.step_time.v),
                        show(m.needed),
                        show(winner.plan.cluster().device.memory));
  }
  return text;
}

std::string diagnosis_text(const Plan& plan, Seconds step_time, Bytes peak, const Diagnosis& d) {
  std::string text;
  for (const Finding& f : d.findings) {
    text += fmt::format("  {}\n", f.text);
    text += fmt::format("    why: {}\n", f.cause);
    if (!f.note.empty()) text += fmt::format("    note: {}\n", f.note);
    std::vector<std::string> useless;
    std::string useful;
    for (const Remedy& r : f.remedies) {
      if (helps(f, plan, step_time, peak, r)) {
        useful += remedy_line(plan, step_time, peak, r);
      } else {
        useless.push_back(fmt::format("{} ({}, {})",
                                      r.action,
                                      change(step_time.v, per_own_batch(plan, *r.result).v),
                                      show(r.result->peak)));
      }
    }
    if (!useful.empty()) text += "    try:\n" + useful;
    if (!useless.empty()) text += fmt::format("    no help here: {}\n", fmt::join(useless, ", "));
  }
  if (!d.passed.empty()) text += fmt::format("  fine: {}\n", fmt::join(d.passed, ", "));
  return text;
}

std::string flow_text(const DecisionFlow& flow, const RankedPlan* winner) {
  std::string text;
  int number = 0;
  for (const FlowStep& s : flow.steps) {
    text += fmt::format("  {}. {} {}\n     {}\n",
                        ++number,
                        s.question,
                        s.yes ? fmt::format("Yes -> {}.", to_string(s.leads_to)) : "No.",
                        s.evidence);
    if (!s.note.empty()) text += fmt::format("     note: {}\n", s.note);
  }
  if (!flow.best)
    return text + "  no layout of it fits: add devices, shorten the sequence, or offload\n";
  const StepReport& own = flow.best->simulation.report;
  text += fmt::format("  its fastest layout: {}, {}, {}\n",
                      summary(flow.best->plan.layout()),
                      show(own.step_time),
                      show(own.peak_memory));
  if (winner == nullptr) return text;
  const StepReport& best = winner->simulation.report;
  if (winner->plan.layout() == flow.best->plan.layout()) return text + "  the search agrees\n";
  const bool search_wins = best.step_time < own.step_time;
  const auto term = search_wins ? deciding_term(best, own) : deciding_term(own, best);
  return text +
         fmt::format("  the search disagrees: {}, {}, {}: {} than the flow's{}\n",
                     summary(winner->plan.layout()),
                     show(best.step_time),
                     show(best.peak_memory),
                     change(own.step_time.v, best.step_time.v),
                     term ? fmt::format(", which {} {} of {}",
                                        search_wins ? "loses" : "saves",
                                        show(term->difference),
                                        key(term->term))
                          : "") +
         (search_wins ? ""
                      : "  the flow's is the better one here: pin it, as the search does not try "
                        "its ZeRO stage unasked\n");
}

std::string rules_text(const std::vector<RuleCheck>& checks) {
  std::string text;
  for (const RuleCheck& c : checks) {
    text += fmt::format("  {:<8}{}: {}\n", c.holds ? "ok" : "differs", c.rule, c.figures);
    if (!c.note.empty()) text += fmt::format("          note: {}\n", c.note);
  }
  return text;
}

std::string guide_text(const std::vector<DeviceRow>& rows) {
  std::string text = fmt::format("  {:<13} {:>9} {:>6} {:>11} {:>11} {:>11} {:>12} {:>12}  {}\n",
                                 "device",
                                 "step",
                                 "vs #1",
                                 "peak/rank",
                                 "$/step",
                                 "$/step",
                                 "tokens/$",
                                 "tokens/$",
                                 "layout");
  text += fmt::format("  {:<13} {:>9} {:>6} {:>11} {:>11} {:>11} {:>12} {:>12}\n",
                      "",
                      "",
                      "",
                      "",
                      "on demand",
                      "spot",
                      "on demand",
                      "spot");
  const auto tokens = [](const std::optional<double>& n) {
    return n ? fmt::format("{:.3g} M", *n / 1e6) : std::string("unknown");
  };
  for (const DeviceRow& r : rows) {
    if (!r.best) {
      text += fmt::format(
          "  {:<13} does not fit: {}\n",
          r.cluster.device.name,
          r.least > r.cluster.capacity()
              ? fmt::format("needs at least {}, has {}", show(r.least), show(r.cluster.capacity()))
              : "no legal layout");
      continue;
    }
    const StepReport& report = r.best->simulation.report;
    text += fmt::format("  {:<13} {:>9} {:>5.2f}x {:>11} {:>11} {:>11} {:>12} {:>12}  {}\n",
                        r.cluster.device.name,
                        show(report.step_time),
                        report.step_time / rows.front().best->simulation.report.step_time,
                        show(report.peak_memory),
                        price_column(r.per_step(r.prices.on_demand)),
                        price_column(r.per_step(r.prices.spot)),
                        tokens(r.tokens_per_dollar(r.prices.on_demand)),
                        tokens(r.tokens_per_dollar(r.prices.spot)),
                        summary(r.best->plan.layout()));
  }
  text += peak_note(rows);
  text +=
      "  prices are assumptions: list prices of single providers, not quotes, on demand and spot "
      "often of different ones:\n";
  for (const DeviceRow& r : rows) {
    for (const auto& [kind, price] :
         {std::pair{"on demand", &r.prices.on_demand}, std::pair{"spot", &r.prices.spot}}) {
      if (*price) {
        text += fmt::format("    {:<13} {:<9} ${:<7.4g} {}; {}\n",
                            r.cluster.device.name,
                            kind,
                            (*price)->usd_per_hour,
                            (*price)->date,
                            (*price)->source);
      }
    }
  }
  return text;
}

std::string cost_text(const DevicePrices& prices, double device_hours) {
  std::vector<std::string> parts;
  const auto add = [&](const char* kind, const std::optional<DevicePrice>& price) {
    if (!price) return;
    parts.push_back(fmt::format("{} {} at ${:.4g} per device-hour",
                                show(Dollars{device_hours * price->usd_per_hour}),
                                kind,
                                price->usd_per_hour));
  };
  add(prices.own ? "" : "on demand", prices.on_demand);
  add("spot", prices.spot);
  if (parts.empty()) return "unknown (no price_usd_per_device_hour for this cluster)";
  return fmt::format(
      "{}{}", fmt::join(parts, ", "), prices.own ? "" : " (assumed prices: see advise --devices)");
}

}  // namespace meshwright::cli
