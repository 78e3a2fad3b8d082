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

}  // namespace meshwright::cli
